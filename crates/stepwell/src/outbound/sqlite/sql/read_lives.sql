-- read_lives: workers that were not found dead; whether each went or is silent, and its seat.
-- Safe: one writer at a time.
-- Index: worker_alive.
select no, state = 1, seen_at + lease_micros < ?1, seat from worker
where state < 2
order by no
