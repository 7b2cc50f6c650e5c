-- youngest_ready: the youngest ready task of a tenant.
-- Safe: one writer at a time.
-- Index: ready_number.
select run, node from ready where group_id = ?1 order by number desc limit 1
