-- unpark: parked tasks that somebody serves by now.
-- Safe: one writer at a time.
-- Index: primary keys of parked, for each lot that is served, and run.
delete from parked
where (queue, definition) in (select queue, definition from serve)
returning number, queue, definition, losses,
    (select key from run where run.no = parked.run), node, group_id
