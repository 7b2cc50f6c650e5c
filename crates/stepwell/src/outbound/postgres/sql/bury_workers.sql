-- bury_workers: workers were found dead.
-- Safe: the rows are locked.
-- Index: primary key of worker.
update stepwell.worker set state = 2 where no = any($1)
