-- read_worker_numbers: the numbers of workers.
-- Safe: read only; they never change.
-- Index: unique id of worker.
select no, id from stepwell.worker where id = any($1)
