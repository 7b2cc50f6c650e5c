-- clear_timer: a task's timer goes.
-- Safe: one writer at a time.
-- Index: timer_task, key of run.
delete from timer where run = (select no from run where key = ?1) and node = ?2
