-- dump_events: all irregular events in order.
-- Safe: read only.
-- Index: whole table: for checks only.
select number, at, node, attempt, kind, run from event order by run, number
