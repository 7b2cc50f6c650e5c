-- set_timers: timers of tasks.
-- Safe: the runs are locked; a task has at most one.
-- Index: primary key of timer.
insert into stepwell.timer (due_at, run, node)
select * from unnest($1::bigint[], $2::uuid[], $3::int[])
