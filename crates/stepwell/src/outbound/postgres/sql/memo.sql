-- name: forgive_losses
-- Of tasks whose functions came this far. Before store_memos, which locks what this may change. Who
-- charges a task with a loss counts its losses under the lock of its worker, and who changes it for
-- another reason has read it under the lock of its run: both are taken here, in the order of
-- reaping. All rows of holder are locked before the first run, since they are counted.
with holder as materialized (
    select worker.no from stepwell.claim join stepwell.worker on worker.no = claim.worker
    where claim.token = any($3) order by worker.no for key share of worker
), locked as materialized (
    select run.key from stepwell.run
    where run.key = any($1) and (select count(*) from holder) > 0
    order by run.key for update of run
)
update stepwell.task set losses = 0
from locked join unnest($1::uuid[], $2::int[], $3::uuid[]) as c (run, node, token)
    on c.run = locked.key
where task.run = c.run and task.node = c.node and task.token = c.token and task.losses > 0

-- name: store_memos
-- The task of each claim is locked against everybody who would end it, in order, and its token is
-- compared with the row as it is when the lock is there: a claim that was lost stores nothing. What
-- a function may have heard of is never replaced. Gives the claims that hold, and how many memos
-- were stored in all.
with held as materialized (
    select c.run, c.node, c.token
    from unnest($15::uuid[], $16::int[], $17::uuid[]) as c (run, node, token)
    cross join lateral (
        select 1 from stepwell.task
        where task.run = c.run and task.node = c.node and task.token = c.token
        for share) as task
), clock as materialized (
    select coalesce($18::bigint, {now}) as now
), stored as (
    insert into stepwell.memo ({memo_names}, codec, bytes)
    select {memo_stored}, m.codec, m.bytes
    from unnest({memo_arrays}, $13::text[], $14::bytea[]) as m ({memo_names}, codec, bytes)
    join held on held.run = m.run and held.node = m.node and held.token = m.token
    cross join clock
    on conflict (run, node, key) do update set {memo_excluded}, codec = excluded.codec,
        bytes = excluded.bytes
    where memo.number = 0
    returning 1
)
select held.run, held.node, held.token, clock.now, (select count(*) from stored)
from held cross join clock

-- name: find_memos
-- Those that were stored under a claim.
select {memo}
from unnest($1::uuid[], $2::int[], $3::text[], $4::uuid[]) as asked (run, node, key, token)
join stepwell.memo on memo.run = asked.run and memo.node = asked.node and memo.key = asked.key
    and memo.token = asked.token

-- name: put_memos
-- What decisions store; the runs are locked. What a function may have heard of is never replaced.
insert into stepwell.memo ({memo_names}, codec, bytes)
select * from unnest({memo_arrays}, $13::text[], $14::bytea[])
on conflict (run, node, key) do update set {memo_excluded}, codec = excluded.codec,
    bytes = excluded.bytes
where memo.number = 0

-- name: forget_memos
delete from stepwell.memo
using unnest($1::uuid[], $2::int[], $3::text[]) as gone (run, node, key)
where memo.run = gone.run and memo.node = gone.node and memo.key = gone.key

-- name: clear_memos
delete from stepwell.memo
using unnest($1::uuid[], $2::int[]) as gone (run, node)
where memo.run = gone.run and memo.node = gone.node

-- name: read_memos
-- What these functions have done. Index: primary key of memo.
select {memo}, memo.codec, memo.bytes, signal.codec, signal.bytes, signal.name
from unnest($1::uuid[], $2::int[]) as asked (run, node)
cross join lateral (
    select * from stepwell.memo where memo.run = asked.run and memo.node = asked.node
    offset 0) as memo
left join stepwell.signal on signal.run = memo.run and signal.number = memo.refers_to
    and memo.state = {memo.SIGNALLED}
order by memo.run, memo.node, memo.key

-- name: read_memos_of_run
select {memo}, memo.codec, memo.bytes, signal.codec, signal.bytes, signal.name
from stepwell.memo
left join stepwell.signal on signal.run = memo.run and signal.number = memo.refers_to
    and memo.state = {memo.SIGNALLED}
where memo.run = $1
order by memo.node, memo.key

-- name: read_histories
-- What is told of earlier executions of tasks: whether they were suspended, had losses, have
-- signals that nobody got, and when they were first executed.
select task.run, task.node, task.next_memo > 0 or task.resumed_by is not null, task.losses > 0,
    run.n_unconsumed > 0, first.started_at
from unnest($1::uuid[], $2::int[]) as asked (run, node)
join stepwell.task on task.run = asked.run and task.node = asked.node
join stepwell.run on run.key = asked.run
left join stepwell.attempt as first
    on first.run = asked.run and first.node = asked.node and first.attempt = 1

-- name: dump_memos
select {memo} from stepwell.memo order by memo.run, memo.node, memo.key
