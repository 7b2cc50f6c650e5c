-- admit_existing: slots for everything of a tenant that is ready or running.
-- Safe: the tenant is locked.
-- Index: ready_position, primary key of task; all claims, which are few.
insert into stepwell.admitted (group_id, number, run, node)
select $1, r.number, r.run, r.node from stepwell.ready r where r.group_id = $1
union all
select $1, 0, t.run, t.node
from stepwell.claim c
cross join lateral unnest(c.runs, c.nodes) as held (run, node)
cross join lateral (
    select task.run, task.node from stepwell.task
    where task.run = held.run and task.node = held.node and task.token = c.token
    offset 0) as t
cross join lateral (
    select run.group_id from stepwell.run where run.key = t.run offset 0) as run
where run.group_id = $1
on conflict (run, node) do nothing
