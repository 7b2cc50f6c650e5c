-- set_standings: where tenants stand in queues from now on.
-- Safe: the rows are locked.
-- Index: primary key of standing.
update stepwell.standing set last = c.last
from unnest($1::int[], $2::text[], $3::bigint[]) as c (group_id, queue, last)
where standing.group_id = c.group_id and standing.queue = c.queue
