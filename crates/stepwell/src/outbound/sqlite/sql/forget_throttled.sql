-- forget_throttled: a held-back task was cancelled.
-- Safe: one writer at a time.
-- Index: throttled_task, key of run.
delete from throttled where run = (select no from run where key = ?1) and node = ?2
