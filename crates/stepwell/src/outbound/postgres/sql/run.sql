-- name: lock_runs
-- Locked in key order, by a statement of its own: what is read to decide is read later. Each row
-- comes with a time at which nobody else could decide about its run any more: the clock is read
-- before the row is locked, and once more if somebody changed the row meanwhile. The transaction
-- may have begun before others that went first, and must not seem to have decided before them.
select {run}, {locked_at}
from stepwell.run where run.key = any($1) order by run.key for update of run

-- name: read_run
select {run}, tenant.name from stepwell.run join stepwell.tenant using (tenant_no)
where run.key = $1

-- name: read_runs
select {run}, tenant.name from stepwell.run join stepwell.tenant using (tenant_no)
where run.key = any($1)

-- name: find_runs
-- Index: unique (tenant_no, id), by both: the tenant alone may have all runs there are, and a plain
-- join looks them through for each id.
select {run}, tenant.name
from unnest($1::text[], $2::text[]) as asked (tenant, id)
join stepwell.tenant on tenant.name = asked.tenant
cross join lateral (
    select * from stepwell.run
    where run.tenant_no = tenant.tenant_no and run.id = asked.id
    offset 0) as run

-- name: find_run_keys
-- Index: as of find_runs.
select tenant.name, run.id, run.key
from unnest($1::text[], $2::text[]) as asked (tenant, id)
join stepwell.tenant on tenant.name = asked.tenant
cross join lateral (
    select run.id, run.key from stepwell.run
    where run.tenant_no = tenant.tenant_no and run.id = asked.id
    offset 0) as run

-- name: look_until
-- The last of so many runs before a key, if there are so many. Index: primary key of run.
select key from stepwell.run where key < $1 order by key desc limit 1 offset $2

-- name: list_runs
-- Index: primary key of run, backwards; whatever is not asked for is stepped over.
select {run}, tenant.name
from stepwell.run join stepwell.tenant using (tenant_no)
    join stepwell.definition on definition.id = run.definition
where run.key < $1 and run.key >= $6
    and ($2::text is null or tenant.name = $2)
    and ($3::text is null or definition.workflow = $3)
    and ($4::smallint is null or run.status = $4)
order by run.key desc
limit $5

-- name: dump_runs
select {run}, tenant.name from stepwell.run join stepwell.tenant using (tenant_no)
order by run.key

-- name: read_ended
-- With what the step in question left if it has completed, as read_output gives it.
select run.key, run.status, run.failure, asked.node, task.run, task.node,
    coalesce(output.codec, signal.codec), coalesce(output.bytes, signal.bytes), signal.name,
    task.resumed_by
from unnest($1::uuid[], $2::int[]) as asked (run, node)
join stepwell.run on run.key = asked.run and run.status >= {run.COMPLETED}
left join stepwell.task on task.run = run.key and task.node = asked.node
    and task.state = {task.COMPLETED}
left join stepwell.output on output.run = task.run and output.node = task.node
left join stepwell.signal on signal.run = task.run and signal.number = task.resumed_by

-- name: insert_new_runs
-- All of them, or none: a taken id fails the transaction, which is tried again with insert_runs.
-- In the order of the unique (tenant_no, id), against deadlocks.
insert into stepwell.run ({run_names})
select {run_fresh} from unnest({run_fresh_arrays}) as fresh ({run_fresh_names})
order by tenant_no, id

-- name: insert_runs
-- A run whose id is taken is left out: unique (tenant_no, id) decides between two at once. In the
-- order of that index, against deadlocks.
insert into stepwell.run ({run_names})
select {run_fresh} from unnest({run_fresh_arrays}) as fresh ({run_fresh_names})
order by tenant_no, id
on conflict (tenant_no, id) do nothing
returning key

-- name: update_runs
update stepwell.run set {run_set}
from unnest({run_change_arrays}) as c ({run_change_names})
where run.key = c.key
