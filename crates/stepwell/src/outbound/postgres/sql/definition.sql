-- name: lock_definitions
-- Keeps others from numbering definitions at the same time; taken by registrations only.
lock table stepwell.definition in share row exclusive mode

-- name: read_definition
select {definition} from stepwell.definition where id = $1

-- name: read_definitions
select {definition} from stepwell.definition where workflow = $1 order by version

-- name: read_revision
select revision from stepwell.catalog

-- name: draw_revision
update stepwell.catalog set revision = default returning revision

-- name: insert_definition
insert into stepwell.definition (id, workflow, version, signature, body)
values ((select coalesce(max(id), -1) + 1 from stepwell.definition), $1, $2, $3, $4)
returning id, mark

-- name: insert_steps
insert into stepwell.step (definition, node, name)
select $1, node, name from unnest($2::int[], $3::text[]) as step (node, name)

-- name: update_definition
update stepwell.definition set version = $2, body = $3 where id = $1

-- name: count_marked
-- How many of these definitions there are, told by number and mark.
select count(*) from unnest($1::int[], $2::bigint[]) as asked (id, mark)
join stepwell.definition on definition.id = asked.id and definition.mark = asked.mark
