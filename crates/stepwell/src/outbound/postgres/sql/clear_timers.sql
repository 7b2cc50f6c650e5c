-- clear_timers: timers of tasks go.
-- Safe: the runs are locked;
--     rows are never updated, so they are where they were found.
-- Index: primary key of timer.
delete from stepwell.timer where ctid = any(array(
    select found.at from unnest($1::uuid[], $2::int[]) as gone (run, node)
    cross join lateral (
        select timer.ctid as at from stepwell.timer
        where timer.run = gone.run and timer.node = gone.node
        offset 0) as found))
