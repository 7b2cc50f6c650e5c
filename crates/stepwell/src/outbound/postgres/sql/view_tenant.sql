-- view_tenant: a tenant and how much of its work waits.
-- Safe: read only.
-- Index: indexes by group of ready, throttled, parked; task_claimed.
select t.group_id,
    case when t.has_own then t.weight else d.weight end,
    case when t.has_own then t.tasks_max else d.tasks_max end,
    (select count(*) from stepwell.ready where group_id = t.group_id),
    (select count(*) from stepwell.task join stepwell.run on run.key = task.run
     where task.state = 2 and run.group_id = t.group_id),
    (select count(*) from stepwell.throttled where group_id = t.group_id),
    (select count(*) from stepwell.parked where group_id = t.group_id)
from stepwell.tenant t cross join stepwell.tenant_default d
where t.name = $1
