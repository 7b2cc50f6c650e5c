-- forget_throttled: held-back tasks were cancelled.
-- Safe: the tasks are locked;
--     rows are never updated, so they are where they were found.
-- Index: throttled_task.
delete from stepwell.throttled where ctid = any(array(
    select found.at from unnest($1::uuid[], $2::int[]) as gone (run, node)
    cross join lateral (
        select throttled.ctid as at from stepwell.throttled
        where throttled.run = gone.run and throttled.node = gone.node
        offset 0) as found))
