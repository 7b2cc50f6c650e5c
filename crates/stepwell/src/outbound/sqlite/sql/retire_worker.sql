-- retire_worker: a worker goes by itself.
-- Safe: one writer at a time.
-- Index: unique id of worker.
update worker set state = 1 where id = ?1 and state = 0 returning no
