-- view_tenant: a tenant and how much of its work waits.
-- Safe: read only.
-- Index: indexes by group of ready, throttled, parked; all claims, which are few.
select t.group_id,
    case when t.has_own then t.weight else d.weight end,
    case when t.has_own then t.tasks_max else d.tasks_max end,
    (select count(*) from stepwell.ready where group_id = t.group_id),
    (select count(*) from stepwell.claim
     cross join lateral unnest(claim.runs, claim.nodes) as held (run, node)
     cross join lateral (
        select task.run from stepwell.task
        where task.run = held.run and task.node = held.node and task.token = claim.token
        offset 0) as task
     cross join lateral (
        select run.group_id from stepwell.run where run.key = task.run offset 0) as run
     where run.group_id = t.group_id),
    (select count(*) from stepwell.throttled where group_id = t.group_id),
    (select count(*) from stepwell.parked where group_id = t.group_id)
from stepwell.tenant t cross join stepwell.tenant_default d
where t.name = $1
