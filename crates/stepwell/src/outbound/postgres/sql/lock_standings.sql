-- lock_standings: where tenants stand in queues.
-- Safe: locked in order; -1 means never.
-- Index: primary key of standing.
select standing.group_id, standing.queue, standing.last
from unnest($1::int[], $2::text[]) as asked (group_id, queue)
join stepwell.standing on standing.group_id = asked.group_id and standing.queue = asked.queue
order by standing.group_id, standing.queue
for update of standing
