-- lock_worker: a worker that goes by itself.
-- Safe: for update waits for its claim under way, so that none slips in behind.
-- Index: unique id of worker.
select no from stepwell.worker where id = $1 and state = 0 for update
