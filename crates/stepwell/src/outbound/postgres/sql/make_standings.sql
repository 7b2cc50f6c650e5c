-- make_standings: rows for tenants that are new to a queue, so that they can be locked.
-- Safe: unique (group_id, queue); in key order against deadlocks.
-- Index: primary key of standing.
insert into stepwell.standing (group_id, queue, last)
select asked.group_id, asked.queue, -1
from unnest($1::int[], $2::text[]) as asked (group_id, queue)
order by asked.group_id, asked.queue
on conflict (group_id, queue) do nothing
