-- update_definition: take over policies into a stored structure.
-- Safe: one writer at a time.
-- Index: primary key of definition.
update definition set body = ?2, revision = revision + 1 where id = ?1
