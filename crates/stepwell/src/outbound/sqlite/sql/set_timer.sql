-- set_timer: set a task's timer.
-- Safe: one writer; unique (run, node).
-- Index: primary key of timer, key of run.
insert into timer (due_at, number, run, node)
values (?1, ?2, (select no from run where key = ?3), ?4)
