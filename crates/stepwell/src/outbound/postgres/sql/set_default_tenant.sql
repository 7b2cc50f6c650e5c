-- set_default_tenant: what holds for tenants without settings of their own.
-- Safe: one row.
-- Index: primary key of tenant_default.
update stepwell.tenant_default set weight = $1, tasks_max = $2
