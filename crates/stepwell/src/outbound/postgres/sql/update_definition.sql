-- update_definition: take over policies into a stored structure.
-- Safe: the table is locked.
-- Index: primary key of definition.
update stepwell.definition set body = $2, revision = revision + 1 where id = $1
