-- count_tenants: how many tenants there are.
-- Safe: read only.
-- Index: primary key of tenant.
select coalesce(max(group_id) + 1, 0) from tenant
