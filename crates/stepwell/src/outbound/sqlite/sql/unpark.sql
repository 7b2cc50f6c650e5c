-- unpark: parked tasks that somebody serves by now.
-- Safe: one writer at a time.
-- Index: primary key of parked, primary key of serve.
delete from parked
where exists (
    select 1 from serve where serve.queue = parked.queue and serve.definition = parked.definition)
returning number, queue, definition, losses, run, node, group_id
