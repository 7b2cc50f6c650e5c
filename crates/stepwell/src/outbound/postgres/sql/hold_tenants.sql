-- hold_tenants: limited tenants, so that their slots can be counted.
-- Safe: locked in order of their groups; no key update lets new runs of the tenant be stored
--     meanwhile.
-- Index: primary key of tenant.
select group_id from stepwell.tenant where group_id = any($1) order by group_id for no key update
