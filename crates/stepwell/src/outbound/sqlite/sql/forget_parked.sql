-- forget_parked: a parked task was cancelled.
-- Safe: one writer at a time.
-- Index: parked_task.
delete from parked where run = ?1 and node = ?2
