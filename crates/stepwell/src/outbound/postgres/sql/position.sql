-- name: insert_missing_positions
-- In key order against deadlocks; -1 until the tenant has a position.
insert into stepwell.tenant_position (tenant_no, queue, last)
select asked.tenant_no, asked.queue, -1
from unnest($1::int[], $2::text[]) as asked (tenant_no, queue)
order by asked.tenant_no, asked.queue
on conflict (tenant_no, queue) do nothing

-- name: lock_positions
-- Locked in order.
select {tenant_position}
from unnest($1::int[], $2::text[]) as asked (tenant_no, queue)
join stepwell.tenant_position
    on tenant_position.tenant_no = asked.tenant_no and tenant_position.queue = asked.queue
order by tenant_position.tenant_no, tenant_position.queue
for update of tenant_position

-- name: read_positions
select {tenant_position}
from unnest($1::int[], $2::text[]) as asked (tenant_no, queue)
join stepwell.tenant_position
    on tenant_position.tenant_no = asked.tenant_no and tenant_position.queue = asked.queue

-- name: update_positions
update stepwell.tenant_position set {tenant_position_set}
from unnest({tenant_position_change_arrays}) as c ({tenant_position_change_names})
where tenant_position.tenant_no = c.tenant_no and tenant_position.queue = c.queue

-- name: read_frontiers
select queue, max(position) from stepwell.frontier where queue = any($1) group by queue

-- name: fold_frontiers
-- Workers that are gone share one row for each queue, under the number 0, which is nobody's:
-- whoever enqueues reads as many rows as there are live workers. In one statement, so that no look
-- misses both; in order against deadlocks.
with gone as (
    delete from stepwell.frontier where worker = any($1) returning queue, position
)
insert into stepwell.frontier (queue, worker, position)
select queue, 0, max(position) from gone group by queue order by queue
on conflict (queue, worker) do update
set position = greatest(frontier.position, excluded.position)

-- name: lock_positions_for_enqueue
-- All that has to be known to enqueue tasks, one kind of row for each: what is served (1), the last
-- positions of tenants (2), the frontiers of queues (3), and spans of arrival numbers (4). What
-- workers serve and the tenants are locked before, so it is as fresh as those locks; positions are
-- locked here, in order.
with locked as materialized (
    select tenant_position.tenant_no, tenant_position.queue, tenant_position.last
    from unnest($1::int[], $2::text[]) as asked (tenant_no, queue)
    join stepwell.tenant_position
        on tenant_position.tenant_no = asked.tenant_no and tenant_position.queue = asked.queue
    order by tenant_position.tenant_no, tenant_position.queue
    for update of tenant_position
)
select 1 as kind, asked.service as number, asked.queue as name, null::bigint as value
from unnest($4::text[], $5::int[]) as asked (queue, service)
where exists (
    select 1 from stepwell.serve
    where serve.queue = asked.queue and serve.service = asked.service)
union all
select 2, tenant_no, queue, last from locked
union all
select 3, null, queue, max(position) from stepwell.frontier
where queue = any($2) group by queue
union all
select 4, null, null, nextval('stepwell.arrival') from generate_series(1, $3::int)

-- name: take_arrival_numbers
-- Spans of arrival numbers, each of 2^20.
select nextval('stepwell.arrival') from generate_series(1, $1::int)

-- name: read_watermark
-- The last round of the watermark of a service in a queue, the queue's frontier now, and the
-- transactions that are enqueuing now. Locks are listed later than the snapshot is taken. Whoever
-- enqueues takes its lock before it reads the frontier, so whoever read less than this is listed,
-- or has ended.
select last.round, last.order_key, last.frontier, last.enqueuing,
    (select max(position) from stepwell.frontier where queue = $1),
    array(
        select virtualtransaction from pg_locks
        where locktype = 'advisory' and granted and objsubid = 1
            and database = (select oid from pg_database where datname = current_database())
            and (classid::bigint << 32) | objid::bigint
                = hashtextextended('stepwell service ' || $3, 0))
from (select) as once
left join lateral (
    select round, order_key, frontier, enqueuing from stepwell.watermark
    where queue = $1 and service = $2
    order by round desc limit 1) as last on true

-- name: write_watermark
-- A round is written once; whoever comes second writes nothing. Rows are never changed, so that
-- the newest is found at once however many the server has to keep.
with older as (
    delete from stepwell.watermark where queue = $1 and service = $2 and round < $3
)
insert into stepwell.watermark (queue, service, round, order_key, frontier, enqueuing)
values ($1, $2, $3, $4, $5, $6)
on conflict (queue, service, round) do nothing

-- name: ready_before_watermark
select ready.run, ready.node
from stepwell.ready join stepwell.watermark
    on watermark.queue = ready.queue and watermark.service = ready.service
where ready.order_key < watermark.order_key
