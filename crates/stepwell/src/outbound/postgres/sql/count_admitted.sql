-- count_admitted: how many slots of each tenant are taken.
-- Safe: read after the tenant's lock.
-- Index: admitted_tenant.
select group_id, count(*) from stepwell.admitted where group_id = any($1) group by group_id
