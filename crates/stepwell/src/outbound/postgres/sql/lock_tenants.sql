-- lock_tenants: limited tenants, so that their slots can be counted.
-- Safe: locked in order of their groups; counted by a later statement.
-- Index: primary key of tenant.
select group_id from stepwell.tenant where group_id = any($1) order by group_id for update
