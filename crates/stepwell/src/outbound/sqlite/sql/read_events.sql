-- read_events: the irregular events of a run in order.
-- Safe: read only.
-- Index: primary key of event, key of run.
select number, at, node, attempt, kind from event
where run = (select no from run where key = ?1)
order by number
