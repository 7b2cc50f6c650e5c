-- dead_workers: workers that went, or have been silent for longer than their lease.
-- Safe: one writer at a time.
-- Index: worker_alive.
select no from worker
where state < 2 and (state = 1 or seen_at + lease_micros < ?1)
order by no
limit ?2
