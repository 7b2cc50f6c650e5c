-- any_due_timer: whether this epoch is the current one, and how long until the next timer is due,
--     in microseconds.
-- Safe: a hint: both are checked again by whoever fires timers.
-- Index: primary key of leader, timer_due.
select exists (select 1 from stepwell.leader where one and epoch = $1),
    (select due_at from stepwell.timer order by due_at, number limit 1)
    - coalesce($2, (extract(epoch from now()) * 1000000)::bigint)
