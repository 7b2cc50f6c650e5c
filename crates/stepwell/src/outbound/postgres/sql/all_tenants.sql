-- all_tenants: all tenants.
-- Safe: read only.
-- Index: primary key of tenant.
select group_id, name from stepwell.tenant order by group_id
