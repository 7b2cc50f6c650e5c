-- set_admitted: how many tasks of a tenant are ready and running.
-- Safe: one writer at a time.
-- Index: primary key of tenant.
update tenant set n_ready = ?2, n_running = ?3 where group_id = ?1
