-- dump_events: all irregular events in order.
-- Safe: read only.
-- Index: whole table: for checks only.
select number, at, node, attempt, kind, run from stepwell.event order by run, number
