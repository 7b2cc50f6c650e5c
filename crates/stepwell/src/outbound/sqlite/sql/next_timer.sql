-- next_timer: when the next timer is due.
-- Safe: read only.
-- Index: primary key of timer.
select due_at from timer order by due_at, number limit 1
