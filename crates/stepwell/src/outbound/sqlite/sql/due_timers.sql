-- due_timers: timers that are due, earliest first.
-- Safe: one writer at a time.
-- Index: primary keys of timer and run.
select run.key, node from timer join run on run.no = timer.run
where due_at <= ?1 order by due_at, number limit ?2
