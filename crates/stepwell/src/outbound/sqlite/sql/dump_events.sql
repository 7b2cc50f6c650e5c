-- dump_events: all irregular events in order.
-- Safe: read only.
-- Index: whole table: for checks only.
select number, at, node, attempt, kind, run.key
from event join run on run.no = event.run
order by run.key, number
