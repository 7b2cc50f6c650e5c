-- read_workers: workers that were not found dead.
-- Safe: read only.
-- Index: worker_alive.
select no, id from stepwell.worker where state < 2
