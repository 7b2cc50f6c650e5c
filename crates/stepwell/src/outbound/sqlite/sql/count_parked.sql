-- count_parked: how many tasks of a tenant nobody serves.
-- Safe: read only.
-- Index: parked_tenant.
select count(*) from parked where group_id = ?1
