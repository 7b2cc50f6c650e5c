-- clear_timers: timers of tasks go.
-- Safe: the runs are locked.
-- Index: primary key of timer.
delete from stepwell.timer
using unnest($1::uuid[], $2::int[]) as gone (run, node)
where timer.run = gone.run and timer.node = gone.node
