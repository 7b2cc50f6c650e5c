-- lock_tenants: tenants whose settings change.
-- Safe: waits for everybody who counts by the old settings; locked in order of their groups.
-- Index: primary key of tenant.
select group_id from stepwell.tenant where group_id = any($1) order by group_id for update
