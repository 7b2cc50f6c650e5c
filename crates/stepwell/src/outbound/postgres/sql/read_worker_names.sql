-- read_worker_names: the ids of workers.
-- Safe: read only; they never change.
-- Index: primary key of worker.
select no, id from stepwell.worker where no = any($1)
