-- read_tenants_by_name: tenants by name with the settings in force.
-- Safe: read only.
-- Index: unique name of tenant.
select t.group_id, t.name,
    case when t.has_own then t.weight else d.weight end,
    case when t.has_own then t.tasks_max else d.tasks_max end
from stepwell.tenant t cross join stepwell.tenant_default d
where t.name = any($1)
