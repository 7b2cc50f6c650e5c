-- set_tenant: a tenant's own weight and limit.
-- Safe: one writer at a time.
-- Index: primary key of tenant.
update tenant set has_own = 1, weight = ?2, tasks_max = ?3 where group_id = ?1
