-- insert_definition: store a new structure.
-- Safe: one writer; unique (workflow, version) and (workflow, signature).
-- Index: primary key of definition.
insert into definition (id, workflow, version, signature, body)
values ((select coalesce(max(id), -1) + 1 from definition), ?1, ?2, ?3, ?4)
returning id
