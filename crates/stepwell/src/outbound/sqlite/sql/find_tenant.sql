-- find_tenant: a tenant by name.
-- Safe: read only.
-- Index: unique name of tenant.
select group_id, name, has_own, weight, tasks_max, n_ready, n_running from tenant where name = ?1
