-- read_events: the irregular events of a run in order.
-- Safe: read only.
-- Index: primary key of event.
select number, at, node, attempt, kind from stepwell.event where run = $1 order by number
