-- read_tenants: tenants by group with the settings in force.
-- Safe: read only; whoever acts on them locks them afterwards.
-- Index: primary key of tenant.
select t.group_id, t.name,
    case when t.has_own then t.weight else d.weight end,
    case when t.has_own then t.tasks_max else d.tasks_max end
from stepwell.tenant t cross join stepwell.tenant_default d
where t.group_id = any($1)
order by t.group_id
