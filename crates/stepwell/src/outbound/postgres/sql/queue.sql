-- name: first_ready
-- The first tasks of one service in a queue that are no suspects, where their rows are, and whether
-- a suspect waits. Skip locked keeps workers apart and never waits; the task must still be queued,
-- and its run's deadline be ahead, by the clock: the task may have been queued after the claim
-- began, and after the deadline. Before the watermark nothing is left. Index: primary key of ready,
-- in fair order, from the watermark on; ready_suspect, for without it a claim would read the whole
-- queue for a suspect.
with watermark as materialized (
    select coalesce((
        select order_key from stepwell.watermark where queue = $1 and service = $2
        order by round desc limit 1), 0) as order_key
), first as materialized (
    select r.order_key, r.number, r.position, r.losses, r.run, r.node, r.service, r.tenant_no,
        t.attempt, t.failures, t.queued_at, t.resumed_by, r.ctid as ready_at, t.ctid as task_at
    from stepwell.ready r join stepwell.task t on t.run = r.run and t.node = r.node
    where r.queue = $1 and r.service = $2 and r.order_key >= (select order_key from watermark)
        and r.losses < $3
        and t.state = {task.QUEUED} and t.due_at is null
        and (r.deadline is null or r.deadline > coalesce($5, {clock}))
    order by r.order_key, r.number
    limit $4
    for update of r, t skip locked
), lost as materialized (
    select (
        select 1 from stepwell.ready r join stepwell.task t on t.run = r.run and t.node = r.node
        where r.queue = $1 and r.service = $2 and r.order_key >= (select order_key from watermark)
            and r.losses > 0 and r.losses >= $3
            and t.state = {task.QUEUED} and t.due_at is null
            and (r.deadline is null or r.deadline > coalesce($5, {clock}))
        order by r.order_key, r.number
        limit 1) is not null as waits
)
select position, losses, run, node, service, tenant_no, attempt, failures, queued_at, resumed_by,
    ready_at::text, task_at::text, lost.waits
from lost left join first on true
order by order_key, number

-- name: first_ready_of_many
-- As first_ready, of several services. The first $6 of each are looked at, then those before the
-- last of the first $7 of all where a service has more: so the first $7 of all are found, and what
-- is read grows with the services and with what is asked for, not with what waits. Of these, the
-- first $4 that nobody else holds are locked, and no others. How many were found comes along: if
-- all $7 were, and others hold too many of them, there may be more behind. Index: primary key of
-- ready, ready_suspect.
with served as materialized (
    select asked.service, coalesce((
        select order_key from stepwell.watermark
        where watermark.queue = $1 and watermark.service = asked.service
        order by round desc limit 1), 0) as passed
    from unnest($2::int[]) as asked (service)
), head as materialized (
    select served.service, found.*
    from served cross join lateral (
        select r.ctid as at, r.order_key, r.number,
            row_number() over (order by r.order_key, r.number) as place
        from stepwell.ready r
        where r.queue = $1 and r.service = served.service and r.order_key >= served.passed
            and r.losses < $3 and (r.deadline is null or r.deadline > coalesce($5, {clock}))
        order by r.order_key, r.number
        limit $6::bigint) as found
), until as materialized (
    select order_key, number from head order by order_key, number offset $7::bigint - 1 limit 1
), nearest as materialized (
    select at, order_key, number from head
    union all
    select found.at, found.order_key, found.number
    from head left join until on true
    cross join lateral (
        select r.ctid as at, r.order_key, r.number from stepwell.ready r
        where r.queue = $1 and r.service = head.service
            and (r.order_key, r.number) > (head.order_key, head.number)
            and (until.order_key is null
                or (r.order_key, r.number) <= (until.order_key, until.number))
            and r.losses < $3 and (r.deadline is null or r.deadline > coalesce($5, {clock}))
        order by r.order_key, r.number
        limit $7::bigint) as found
    where head.place = $6::bigint and (until.order_key is null
        or (head.order_key, head.number) < (until.order_key, until.number))
    order by order_key, number
    limit $7::bigint
), mine as materialized (
    select r.order_key, r.number, r.position, r.losses, r.run, r.node, r.service, r.tenant_no,
        r.ctid as ready_at
    from nearest join stepwell.ready r on r.ctid = nearest.at
    order by r.order_key, r.number
    limit $4
    for update of r skip locked
), first as materialized (
    select mine.order_key, mine.number, mine.position, mine.losses, mine.run, mine.node,
        mine.service, mine.tenant_no, t.attempt, t.failures, t.queued_at, t.resumed_by,
        mine.ready_at, t.ctid as task_at
    from mine join stepwell.task t on t.run = mine.run and t.node = mine.node
    where t.state = {task.QUEUED} and t.due_at is null
    for update of t skip locked
), lost as materialized (
    select found.number
    from served cross join lateral (
        select r.number
        from stepwell.ready r join stepwell.task t on t.run = r.run and t.node = r.node
        where r.queue = $1 and r.service = served.service and r.order_key >= served.passed
            and r.losses > 0 and r.losses >= $3
            and t.state = {task.QUEUED} and t.due_at is null
            and (r.deadline is null or r.deadline > coalesce($5, {clock}))
        order by r.order_key, r.number
        limit 1) as found
    limit 1
)
select position, losses, run, node, service, tenant_no, attempt, failures, queued_at, resumed_by,
    ready_at::text, task_at::text, counted.suspect_waits, counted.n_found
from (
    select exists (select from lost) as suspect_waits, count(*) as n_found from nearest) as counted
left join first on true
order by order_key, number

-- name: first_suspect
-- The first suspect of these services in a queue, as first_ready finds tasks that are none. Those
-- who ask come one after the other. Index: ready_suspect.
with served as materialized (
    select asked.service, coalesce((
        select order_key from stepwell.watermark
        where watermark.queue = $1 and watermark.service = asked.service
        order by round desc limit 1), 0) as passed
    from unnest($2::int[]) as asked (service)
), lost as materialized (
    select found.ready_at, found.task_at
    from served cross join lateral (
        select r.order_key, r.number, r.ctid as ready_at, t.ctid as task_at
        from stepwell.ready r join stepwell.task t on t.run = r.run and t.node = r.node
        where r.queue = $1 and r.service = served.service and r.order_key >= served.passed
            and r.losses > 0 and r.losses >= $3
            and t.state = {task.QUEUED} and t.due_at is null
            and (r.deadline is null or r.deadline > coalesce($4, {clock}))
        order by r.order_key, r.number
        limit 1) as found
    order by found.order_key, found.number
    limit 1
)
select r.position, r.losses, r.run, r.node, r.service, r.tenant_no, t.attempt, t.failures,
    t.queued_at, t.resumed_by, r.ctid::text, t.ctid::text
from lost join stepwell.ready r on r.ctid = lost.ready_at
join stepwell.task t on t.ctid = lost.task_at
where t.state = {task.QUEUED} and t.due_at is null
for update of r, t skip locked

-- name: claim_tasks
-- The rows are locked by first_ready, so they are where it found them; the token turns late writes
-- into no-ops.
with chosen as materialized (
    select task_at::tid as task_at, attempt, started_at, turn
    from unnest($1::text[], $2::int[], $3::bigint[]) with ordinality
        as c (task_at, attempt, started_at, turn)
), taken as (
    delete from stepwell.ready where ctid = any($4::text[]::tid[])
), claimed as (
    update stepwell.task set state = {task.RUNNING}, attempt = chosen.attempt,
    started_at = chosen.started_at, worker = $5, token = $6
    from chosen
    where task.ctid = chosen.task_at and task.state = {task.QUEUED}
    returning task.run, task.node, chosen.turn
), held as (
    insert into stepwell.claim (token, worker, runs, nodes, n_open)
    select $6, $5, array_agg(run order by turn), array_agg(node order by turn), count(*)
    from claimed having count(*) > 0
), raised as (
    -- The worker's own rows; they never go back.
    insert into stepwell.frontier (queue, worker, position)
    select queue, $5, position from unnest($7::text[], $8::bigint[]) as f (queue, position)
    on conflict (queue, worker) do update
    set position = greatest(frontier.position, excluded.position)
)
select claimed.turn, run.id
from claimed
join stepwell.run on run.key = claimed.run
order by claimed.turn

-- name: insert_ready
insert into stepwell.ready ({queued_names}, order_key, position)
select * from unnest({queued_arrays}, $9::bigint[], $10::bigint[])

-- name: insert_throttled
insert into stepwell.throttled ({queued_names}) select * from unnest({queued_arrays})

-- name: insert_parked
insert into stepwell.parked ({queued_names}) select * from unnest({queued_arrays})

-- name: insert_admitted
insert into stepwell.admitted ({admitted_names}) select * from unnest({admitted_arrays})
on conflict (run, node) do nothing

-- name: withdraw_ready
-- The tasks are locked, so no claim holds their rows for long; rows are never updated, so they are
-- where they were found. Index: ready_task.
delete from stepwell.ready where ctid = any(array(
    select found.at from unnest($1::uuid[], $2::int[]) as gone (run, node)
    cross join lateral (
        select ready.ctid as at from stepwell.ready
        where ready.run = gone.run and ready.node = gone.node
        offset 0) as found))
returning {queued_names}

-- name: ready_places
-- The queues and services of which a task is ready, each found behind the one before, and whether
-- somebody serves them. Index: primary key of ready.
with recursive place (queue, service) as (
    (select ready.queue, ready.service from stepwell.ready
     order by ready.queue, ready.service limit 1)
    union all
    select next.queue, next.service
    from place cross join lateral (
        select ready.queue, ready.service from stepwell.ready
        where (ready.queue, ready.service) > (place.queue, place.service)
        order by ready.queue, ready.service limit 1) as next
)
select place.queue, place.service, exists (
    select 1 from stepwell.serve
    where serve.queue = place.queue and serve.service = place.service)
from place

-- name: tenants_ready_at
-- Of the first tasks of queues and services. Index: primary key of ready.
select distinct found.tenant_no
from unnest($1::text[], $2::int[]) as place (queue, service)
cross join lateral (
    select ready.tenant_no from stepwell.ready
    where ready.queue = place.queue and ready.service = place.service
    order by ready.order_key, ready.number limit $3) as found

-- name: withdraw_ready_at
-- The first ready tasks of queues and services, of tenants that are locked. The tasks are locked
-- along: whoever ends them meanwhile has not looked for them yet. Rows that others hold are left
-- alone; none is ever updated, so they are where they were found. Index: primary key of ready.
delete from stepwell.ready where ctid = any(array(
    select found.at
    from unnest($1::text[], $2::int[]) as place (queue, service)
    cross join lateral (
        select r.ctid as at, r.number
        from stepwell.ready r join stepwell.task t on t.run = r.run and t.node = r.node
        where r.queue = place.queue and r.service = place.service and r.tenant_no = any($4)
        order by r.order_key, r.number limit $3
        for update of r, t skip locked) as found
    order by found.number limit $3))
returning {queued_names}

-- name: first_left_in_queue
-- By a later statement than the one that found who has ended.
select order_key from stepwell.ready where queue = $1 and service = $2 and order_key >= $3
order by order_key, number limit 1

-- name: greatest_positions
-- Read after the withdrawal. Index: ready_position.
select asked.tenant_no, asked.queue, (
    select max(r.position) from stepwell.ready r
    where r.tenant_no = asked.tenant_no and r.queue = asked.queue)
from unnest($1::int[], $2::text[]) as asked (tenant_no, queue)

-- name: youngest_ready
-- The tenant is locked; rows a claim holds are left alone. Index: ready_position.
select run, node from stepwell.ready where tenant_no = $1
order by number desc limit $2 for update skip locked

-- name: delete_parked
-- The tasks are locked; rows are never updated, so they are where they were found. Index:
-- parked_task.
delete from stepwell.parked where ctid = any(array(
    select found.at from unnest($1::uuid[], $2::int[]) as gone (run, node)
    cross join lateral (
        select parked.ctid as at from stepwell.parked
        where parked.run = gone.run and parked.node = gone.node
        offset 0) as found))

-- name: delete_throttled
-- The tasks are locked; rows are never updated, so they are where they were found. Index:
-- throttled_task.
delete from stepwell.throttled where ctid = any(array(
    select found.at from unnest($1::uuid[], $2::int[]) as gone (run, node)
    cross join lateral (
        select throttled.ctid as at from stepwell.throttled
        where throttled.run = gone.run and throttled.node = gone.node
        offset 0) as found))

-- name: pop_throttled
-- The oldest throttled tasks of a tenant, which is locked.
delete from stepwell.throttled
where tenant_no = $1 and number in (
    select number from stepwell.throttled where tenant_no = $1 order by number limit $2)
returning {queued_names}

-- name: tenants_with_throttled
-- Index: primary key of throttled, for each.
select asked.tenant_no from unnest($1::int[]) as asked (tenant_no)
cross join lateral (
    select 1 from stepwell.throttled where throttled.tenant_no = asked.tenant_no limit 1) as first

-- name: delete_admitted
-- The runs are locked; rows are never updated, so they are where they were found.
delete from stepwell.admitted where ctid = any(array(
    select found.at from unnest($1::uuid[], $2::int[]) as gone (run, node)
    cross join lateral (
        select admitted.ctid as at from stepwell.admitted
        where admitted.run = gone.run and admitted.node = gone.node
        offset 0) as found))
returning tenant_no

-- name: delete_admitted_of_tenants
delete from stepwell.admitted where tenant_no = any($1)

-- name: count_admitted
-- Counted after the tenants were locked. Index: admitted_tenant.
select tenant_no, count(*) from stepwell.admitted where tenant_no = any($1) group by tenant_no

-- name: admit_existing
-- An admission for every task of tenants that is ready or running. The tenants are locked. Index:
-- ready_position, primary key of task; all claims, which are few.
insert into stepwell.admitted (tenant_no, number, run, node)
select r.tenant_no, r.number, r.run, r.node from stepwell.ready r where r.tenant_no = any($1)
union all
select run.tenant_no, 0, t.run, t.node
from stepwell.claim c
cross join lateral unnest(c.runs, c.nodes) as held (run, node)
cross join lateral (
    select task.run, task.node from stepwell.task
    where task.run = held.run and task.node = held.node and task.token = c.token
    offset 0) as t
cross join lateral (
    select run.tenant_no from stepwell.run where run.key = t.run offset 0) as run
where run.tenant_no = any($1)
on conflict (run, node) do nothing

-- name: read_places
select run, node, 'ready', queue, order_key from stepwell.ready
union all select run, node, 'throttled', queue, 0 from stepwell.throttled
union all select run, node, 'parked', queue, 0 from stepwell.parked

-- name: read_admitted
-- Ready or running tasks of each tenant.
select t.name,
    (select count(*) from stepwell.ready where tenant_no = t.tenant_no)
    + (select count(*) from stepwell.task join stepwell.run on run.key = task.run
       where task.state = {task.RUNNING} and run.tenant_no = t.tenant_no)
from stepwell.tenant t
