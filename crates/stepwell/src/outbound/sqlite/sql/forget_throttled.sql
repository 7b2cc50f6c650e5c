-- forget_throttled: a held-back task was cancelled.
-- Safe: one writer at a time.
-- Index: throttled_task.
delete from throttled where run = ?1 and node = ?2
