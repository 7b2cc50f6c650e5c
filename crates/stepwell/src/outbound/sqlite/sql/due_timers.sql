-- due_timers: timers that are due, earliest first.
-- Safe: one writer at a time.
-- Index: primary key of timer.
select run, node from timer where due_at <= ?1 order by due_at, number limit ?2
