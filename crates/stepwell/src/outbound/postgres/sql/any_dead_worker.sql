-- any_dead_worker: whether there may be workers to reap.
-- Safe: a hint: checked again under their locks.
-- Index: worker_alive.
select 1 from stepwell.worker
where state < 2 and (state = 1 or seen_at + lease_micros < $1)
limit 1
