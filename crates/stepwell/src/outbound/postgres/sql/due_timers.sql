-- due_timers: timers that are due, earliest first.
-- Safe: a hint: each is checked again under its run's lock.
-- Index: timer_due.
select run, node from stepwell.timer where due_at <= $1 order by due_at, number limit $2
