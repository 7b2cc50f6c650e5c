-- update_definition: take over policies into a stored structure.
-- Safe: the table is locked.
-- Index: primary key of definition.
update stepwell.definition set body = $2 where id = $1
