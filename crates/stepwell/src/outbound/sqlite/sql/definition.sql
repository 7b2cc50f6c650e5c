-- Definitions of workflows.

-- name: insert_definition
insert into definition (id, workflow, version, signature, body)
values ((select coalesce(max(id), -1) + 1 from definition), ?1, ?2, ?3, ?4)
returning id, mark

-- name: insert_step
insert into step (definition, node, name) values (?1, ?2, ?3)

-- name: update_definition
update definition set {definition_updates} where id = ?1

-- name: read_definition
select {definition} from definition where id = ?1

-- name: read_definitions
select {definition} from definition where workflow = ?1 order by id

-- name: read_definition_ids
select id from definition where workflow = ?1 order by id
