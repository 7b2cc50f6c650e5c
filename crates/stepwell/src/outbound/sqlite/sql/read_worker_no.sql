-- read_worker_no: the number of a worker, alive or not.
-- Safe: read only.
-- Index: unique id of worker.
select no from worker where id = ?1
