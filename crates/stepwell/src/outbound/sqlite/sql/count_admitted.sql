-- count_admitted: raise or lower a tenant's counts of ready and running tasks.
-- Safe: one writer; relative, so batches add up.
-- Index: primary key of tenant.
update tenant set n_ready = n_ready + ?2, n_running = n_running + ?3 where group_id = ?1
