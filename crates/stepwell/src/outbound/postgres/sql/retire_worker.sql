-- retire_worker: a worker goes by itself.
-- Safe: the worker's own row.
-- Index: unique id of worker.
update stepwell.worker set state = 1 where id = $1 and state = 0 returning no
