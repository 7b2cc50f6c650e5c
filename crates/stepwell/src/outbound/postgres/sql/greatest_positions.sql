-- greatest_positions: the greatest positions of tenants' ready tasks.
-- Safe: read after the withdrawal.
-- Index: ready_position.
select asked.group_id, asked.queue, (
    select max(r.position) from stepwell.ready r
    where r.group_id = asked.group_id and r.queue = asked.queue)
from unnest($1::int[], $2::text[]) as asked (group_id, queue)
