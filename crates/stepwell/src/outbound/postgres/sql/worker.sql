-- name: lock_serving_shared
-- Holds still what live workers serve. Shared by all who enqueue tasks, and taken before any row
-- is locked. What read_identity reads comes along.
select {now}, (select revision from stepwell.catalog),
    (select mark from stepwell.tenant where tenant_no = $2),
    pg_advisory_xact_lock_shared(hashtextextended('stepwell service ' || $1, 0))

-- name: lock_serving_exclusive
-- Waits for all who enqueue tasks. Taken before any row is locked.
select pg_advisory_xact_lock(hashtextextended('stepwell service ' || $1, 0))

-- name: upsert_worker
insert into stepwell.worker (id, queues, lease_micros, seen_at, state)
values ($1, $2, $3, $4, {worker.ALIVE})
on conflict (id) do update set queues = excluded.queues, lease_micros = excluded.lease_micros,
    seen_at = excluded.seen_at, n_beats = worker.n_beats + 1, state = excluded.state,
    was_lost = false, next_turn = 0
returning no

-- name: insert_serve
insert into stepwell.serve (worker, queue, service)
select $1, queue, service from unnest($2::text[]) queue, unnest($3::int[]) service
on conflict do nothing

-- name: delete_serve
delete from stepwell.serve where worker = any($1)

-- name: read_served
-- Which of these services somebody has in these queues. Index: primary key of serve.
select asked.queue, asked.service
from unnest($1::text[], $2::int[]) as asked (queue, service)
where exists (
    select 1 from stepwell.serve
    where serve.queue = asked.queue and serve.service = asked.service)

-- name: renew_lease
update stepwell.worker set seen_at = $2, n_beats = n_beats + 1
where id = $1 and state = {worker.ALIVE}
returning no

-- name: lock_worker
-- For update waits for the worker's claim under way, so that none slips in behind.
select no from stepwell.worker where id = $1 and state = {worker.ALIVE} for update

-- name: mark_worker_leaving
update stepwell.worker set state = {worker.LEAVING} where id = $1 and state = {worker.ALIVE}
returning no

-- name: end_workers
-- Nothing is left to be taken from them. Whoever left by itself is gone, the others are dead; one
-- that registered again meanwhile is neither.
update stepwell.worker
set state = case when was_lost then {worker.DEAD} else {worker.GONE} end, in_trial = false
where no = any($1) and state = {worker.LEAVING}
returning no

-- name: next_claim_count
-- Greater than that of every claim until now, less than that of every later one.
select nextval('stepwell.claim_count')

-- name: mark_workers_lost
-- They neither claim nor beat any more; what they hold is still to be taken from them.
update stepwell.worker
set state = {worker.LEAVING}, was_lost = was_lost or state = {worker.ALIVE}
where no = any($1)

-- name: read_lives
-- Workers that were not found dead. Index: worker_alive.
select {life} from stepwell.worker where worker.state < {worker.DEAD} order by worker.no

-- name: lock_silent
-- Workers of which nothing was heard since those beats. For update waits for their heartbeats and
-- claims under way, so that none slips in behind.
select worker.no from stepwell.worker
join unnest($1::text[], $2::bigint[]) as silent (id, n_beats) on silent.id = worker.id
where worker.n_beats = silent.n_beats and worker.state < {worker.DEAD}
order by worker.no
for update of worker

-- name: find_worker
-- The count for the next claim's token and the database's time come along. Key share keeps a
-- reaper from marking the worker dead before the claim commits. What read_identity reads comes
-- along.
select {serving}, nextval('stepwell.claim_count'), {now}, (select revision from stepwell.catalog),
    (select mark from stepwell.tenant where tenant_no = $2)
from stepwell.worker where id = $1 and state = {worker.ALIVE}
for key share

-- name: find_idle_worker
-- A live worker that holds no trial and for whose services nothing waits in its queues, and the
-- count for the token of what is handed over to it. What workers serve is held still by an earlier
-- statement, so the worker is not marked dead meanwhile. Before a watermark nothing is left.
select {serving}, nextval('stepwell.claim_count')
from stepwell.worker
where id = $1 and state = {worker.ALIVE} and not in_trial and not exists (
    select from stepwell.serve
    left join lateral (
        select order_key from stepwell.watermark
        where watermark.queue = serve.queue and watermark.service = serve.service
        order by round desc limit 1) as watermark on true
    -- By the first of each: whatever the planner thinks of their size, it takes the index.
    where serve.worker = worker.no and (
        select ready.order_key from stepwell.ready
        where ready.queue = serve.queue and ready.service = serve.service
            and ready.order_key >= coalesce(watermark.order_key, 0)
        order by ready.order_key limit 1) is not null)

-- name: set_next_turn
update stepwell.worker set next_turn = $2 where no = $1

-- name: lock_trials
-- Those who ask for suspects come one after the other: how many hold trials is counted. Taken
-- before any row is locked.
select pg_advisory_xact_lock(hashtextextended('stepwell trial ' || $1, 0))

-- name: read_crews
-- How many live workers have a service of this one, and how many of the others among them hold a
-- trial; then the same for each of its services in each of its queues.
select count(*), count(*) filter (where worker.in_trial and worker.no <> $1)
from (
    select distinct service, worker from stepwell.serve
    where service in (select service from stepwell.serve where worker = $1)) as served
join stepwell.worker on worker.no = served.worker and worker.state = {worker.ALIVE}
group by served.service
union all
select count(*), count(*) filter (where worker.in_trial and worker.no <> $1)
from stepwell.serve as mine
join stepwell.serve as served on served.queue = mine.queue and served.service = mine.service
join stepwell.worker on worker.no = served.worker and worker.state = {worker.ALIVE}
where mine.worker = $1
group by mine.queue, mine.service

-- name: set_in_trial
update stepwell.worker set in_trial = $2 where no = $1

-- name: read_worker_names
select no, id from stepwell.worker where no = any($1)

-- name: read_worker_numbers
select no, id from stepwell.worker where id = any($1)

-- name: read_workers
select no, id from stepwell.worker where state < {worker.DEAD}

-- name: insert_claims
insert into stepwell.claim (token, worker, runs, nodes, n_open)
values ($1, $2, $3::uuid[], $4::int[], cardinality($3::uuid[]))

-- name: end_claims
-- Counts ended claims down in their batches; a batch without any left goes, and one of which half
-- has ended is written anew without those: whoever reads it reads at most twice what it holds.
-- Locked in order, after everything else; the count is the one found with the lock. What ended
-- while that was waited for may be kept until the next time: tasks are asked for their token.
with locked as materialized (
    select token, n_open, cardinality(runs) as n_all from stepwell.claim where token = any($1)
    order by token for update
), ended as materialized (
    select locked.token, locked.n_open - ended.n as n_left, locked.n_all
    from locked join unnest($1::uuid[], $2::int[]) as ended (token, n) on ended.token = locked.token
), gone as (
    delete from stepwell.claim using ended
    where claim.token = ended.token and ended.n_left <= 0
), halved as materialized (
    select ended.token, array_agg(held.run) as runs, array_agg(held.node) as nodes
    from ended join stepwell.claim on claim.token = ended.token
    cross join lateral unnest(claim.runs, claim.nodes) as held (run, node)
    cross join lateral (
        select from stepwell.task
        where task.run = held.run and task.node = held.node and task.token = ended.token
        offset 0) as task
    where ended.n_left > 0 and ended.n_left * 2 <= ended.n_all
    group by ended.token
)
update stepwell.claim
set n_open = ended.n_left, runs = coalesce(halved.runs, claim.runs),
    nodes = coalesce(halved.nodes, claim.nodes)
from ended left join halved on halved.token = ended.token
where claim.token = ended.token and ended.n_left > 0

-- name: read_claims
-- A task that was claimed anew has another token. Index: claim_worker, then the primary key of task
-- for each claim.
select claim.worker, held.run, held.node, claim.token, task.losses
from stepwell.claim
cross join lateral unnest(claim.runs, claim.nodes) as held (run, node)
cross join lateral (
    select task.losses from stepwell.task
    where task.run = held.run and task.node = held.node and task.token = claim.token
    offset 0) as task
where claim.worker = any($1)

-- name: read_losses
-- Of tasks that these claims still hold, as read_claims has them.
select task.worker, task.run, task.node, task.token, task.losses
from unnest($1::uuid[], $2::int[], $3::uuid[]) as held (run, node, token)
cross join lateral (
    select * from stepwell.task
    where task.run = held.run and task.node = held.node and task.token = held.token
    offset 0) as task

-- name: miscounted_claims
-- Batches whose count is not that of the tasks they hold, and running tasks that no batch holds.
select claim.token from stepwell.claim
where claim.n_open <> (
    select count(*) from stepwell.task
    where task.token = claim.token and task.state = {task.RUNNING})
union all
select task.token from stepwell.task
where task.state = {task.RUNNING} and not exists (
    select 1 from stepwell.claim
    where claim.token = task.token and claim.worker = task.worker
        and (task.run, task.node) in (
            select held.run, held.node
            from unnest(claim.runs, claim.nodes) as held (run, node)))
