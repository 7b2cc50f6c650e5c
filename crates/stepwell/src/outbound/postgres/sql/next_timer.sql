-- next_timer: when the next timer is due.
-- Safe: read only.
-- Index: timer_due.
select due_at from stepwell.timer order by due_at, number limit 1
