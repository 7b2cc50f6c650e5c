-- next_throttled: let the oldest held-back task of a tenant go.
-- Safe: one writer at a time.
-- Index: primary key of throttled.
delete from throttled
where group_id = ?1 and number = (select min(number) from throttled where group_id = ?1)
returning number, queue, definition, losses, run, node
