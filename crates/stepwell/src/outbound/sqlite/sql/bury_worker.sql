-- bury_worker: a worker was found dead.
-- Safe: one writer at a time.
-- Index: primary key of worker.
update worker set state = 2 where no = ?1
