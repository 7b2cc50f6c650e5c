-- read_places: where all queued tasks wait.
-- Safe: read only.
-- Index: whole tables: for checks only.
select run, node, 0, queue, order_key from stepwell.ready
union all select run, node, 1, queue, 0 from stepwell.throttled
union all select run, node, 2, queue, 0 from stepwell.parked
