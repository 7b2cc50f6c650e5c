-- set_tenant: a tenant's own weight and limit.
-- Safe: the row is locked; waits for transactions that counted by the old settings.
-- Index: primary key of tenant.
update stepwell.tenant set has_own = true, weight = $2, tasks_max = $3 where group_id = $1
