-- read_tenant: a tenant by group.
-- Safe: read only.
-- Index: primary key of tenant.
select group_id, name, has_own, weight, tasks_max, n_ready,
    n_running from tenant where group_id = ?1
