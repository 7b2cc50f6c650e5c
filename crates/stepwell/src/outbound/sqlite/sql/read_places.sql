-- read_places: where every queued task waits.
-- Safe: one snapshot.
-- Index: none; it reads all of them, for checks.
with place (run, node, kind, queue, order_key) as (
    select run, node, 0, queue, order_key from task where queue is not null
    union all select run, node, 1, queue, 0 from throttled
    union all select run, node, 2, queue, 0 from parked
)
select run.key, node, kind, queue, order_key from place join run on run.no = place.run
