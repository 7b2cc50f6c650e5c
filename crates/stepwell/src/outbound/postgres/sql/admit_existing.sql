-- admit_existing: slots for everything of a tenant that is ready or running.
-- Safe: the tenant is locked.
-- Index: ready_position, task_claimed.
insert into stepwell.admitted (group_id, number, run, node)
select $1, r.number, r.run, r.node from stepwell.ready r where r.group_id = $1
union all
select $1, 0, t.run, t.node
from stepwell.task t join stepwell.run on run.key = t.run
where t.state = 2 and run.group_id = $1
on conflict (run, node) do nothing
