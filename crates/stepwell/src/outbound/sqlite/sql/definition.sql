-- Definitions of workflows.

-- name: insert_definition
insert into definition (id, workflow, version, signature, body)
values ((select coalesce(max(id), -1) + 1 from definition), ?1, ?2, ?3, ?4)
returning id

-- name: insert_step
insert into step (definition, node, name) values (?1, ?2, ?3)

-- name: update_definition
update definition set {definition_updates}, revision = revision + 1 where id = ?1

-- name: read_definition
select {definition} from definition where id = ?1

-- name: read_definitions
select {definition} from definition where workflow = ?1 order by id

-- name: read_definition_ids
select id from definition where workflow = ?1 order by id

-- name: read_revisions
-- Changes whenever the policies of a definition do. A new definition is in no cache yet.
select coalesce(sum(revision), 0) from definition
