-- unpark: parked tasks that somebody serves by now.
-- Safe: one writer at a time.
-- Index: primary key of parked, for each lot that is served.
delete from parked
where (queue, definition) in (select queue, definition from serve)
returning number, queue, definition, losses, run, node, group_id
