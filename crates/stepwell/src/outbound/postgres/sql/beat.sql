-- beat: renew a live worker's lease.
-- Safe: the worker's own row.
-- Index: unique id of worker.
update stepwell.worker set seen_at = $2 where id = $1 and state = 0 returning no
