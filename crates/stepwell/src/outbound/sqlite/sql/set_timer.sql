-- set_timer: set a task's timer.
-- Safe: one writer; unique (run, node).
-- Index: primary key of timer.
insert into timer (due_at, number, run, node) values (?1, ?2, ?3, ?4)
