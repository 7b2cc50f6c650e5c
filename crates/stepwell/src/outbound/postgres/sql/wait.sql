-- name: insert_waits
insert into stepwell.wait ({wait_names})
select {wait_opened} from unnest({wait_arrays}) as c ({wait_names})

-- name: delete_waits
-- The runs are locked, and rows are never updated, so they are where they were found.
delete from stepwell.wait where ctid = any(array(
    select found.at from unnest($1::uuid[], $2::int[]) as gone (run, node)
    cross join lateral (
        select wait.ctid as at from stepwell.wait
        where wait.run = gone.run and wait.node = gone.node
        offset 0) as found))

-- name: delete_ended_waits
-- Waits of functions that are over one by one.
delete from stepwell.wait where ctid = any(array(
    select found.at from unnest($1::uuid[], $2::int[], $3::text[]) as gone (run, node, key)
    cross join lateral (
        select wait.ctid as at from stepwell.wait
        where wait.run = gone.run and wait.node = gone.node and wait.key = gone.key
        offset 0) as found))

-- name: read_waits
-- The open waits of runs, the oldest of each first.
select {wait} from stepwell.wait where wait.run = any($1)
order by wait.run, wait.number, wait.place, wait.node

-- name: waiting_runs
-- A page of runs of a tenant and a workflow that wait for a signal: the first of each version of
-- the workflow, and of those the first. Index: wait_tenant, in the order of runs.
select found.run::uuid
from stepwell.definition
cross join lateral (
    select distinct wait.run::text collate "C" as run from stepwell.wait
    where wait.tenant_no = (select tenant.tenant_no from stepwell.tenant where tenant.name = $1)
        and wait.definition = definition.id and wait.run::text collate "C" > $4::uuid::text
        and $3 = any(wait.signals)
    order by wait.run::text collate "C"
    limit $5) as found
where definition.workflow = $2
order by found.run
limit $5

-- name: dump_waits
select {wait} from stepwell.wait order by wait.run, wait.number, wait.place, wait.node
