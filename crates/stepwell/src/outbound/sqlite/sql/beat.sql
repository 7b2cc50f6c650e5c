-- beat: renew a live worker's lease.
-- Safe: one writer at a time.
-- Index: unique id of worker.
update worker set seen_at = ?2 where id = ?1 and state = 0 returning no
