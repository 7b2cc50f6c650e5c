-- share_tenants: tenants that were read as unlimited.
-- Safe: key share holds off a change of settings until the end of the transaction.
-- Index: primary key of tenant.
select t.group_id, t.name,
    case when t.has_own then t.weight else d.weight end,
    case when t.has_own then t.tasks_max else d.tasks_max end
from stepwell.tenant t cross join stepwell.tenant_default d
where t.group_id = any($1)
order by t.group_id
for key share of t
