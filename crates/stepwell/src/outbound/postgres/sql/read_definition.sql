-- read_definition: one definition.
-- Safe: read only.
-- Index: primary key of definition.
select id, version, body from stepwell.definition where id = $1
