-- next_throttled: let the oldest held-back task of a tenant go.
-- Safe: one writer at a time.
-- Index: primary keys of throttled and run.
delete from throttled
where group_id = ?1 and number = (select min(number) from throttled where group_id = ?1)
returning number, queue, definition, losses,
    (select key from run where run.no = throttled.run), node
