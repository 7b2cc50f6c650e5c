-- read_definitions: the definitions of one workflow, oldest first.
-- Safe: read only.
-- Index: unique (workflow, version).
select id, version, body from stepwell.definition where workflow = $1 order by version
