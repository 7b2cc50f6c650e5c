-- clear_timer: a task's timer goes.
-- Safe: one writer at a time.
-- Index: timer_task.
delete from timer where run = ?1 and node = ?2
