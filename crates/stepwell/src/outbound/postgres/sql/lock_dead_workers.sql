-- lock_dead_workers: workers that went, or have been silent for longer than their lease.
-- Safe: for update waits for their claims under way, so that none slips in behind.
-- Index: worker_alive.
select no from stepwell.worker
where state < 2 and (state = 1 or seen_at + lease_micros < $1)
order by no
limit $2
for update
