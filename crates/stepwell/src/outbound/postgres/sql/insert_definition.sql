-- insert_definition: store a new structure.
-- Safe: the table is locked; unique (workflow, version) and (workflow, signature).
-- Index: primary key of definition.
insert into stepwell.definition (id, workflow, version, signature, body)
values ((select coalesce(max(id), -1) + 1 from stepwell.definition), $1, $2, $3, $4)
returning id
