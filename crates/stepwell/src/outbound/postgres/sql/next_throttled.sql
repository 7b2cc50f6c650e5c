-- next_throttled: let the oldest held-back tasks of a tenant go.
-- Safe: the tenant is locked.
-- Index: primary key of throttled.
delete from stepwell.throttled
where group_id = $1 and number in (
    select number from stepwell.throttled where group_id = $1 order by number limit $2)
returning number, queue, definition, losses, run, node, group_id
