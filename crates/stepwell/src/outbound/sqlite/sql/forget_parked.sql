-- forget_parked: a parked task was cancelled.
-- Safe: one writer at a time.
-- Index: parked_task, key of run.
delete from parked where run = (select no from run where key = ?1) and node = ?2
