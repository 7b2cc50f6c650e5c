-- forget_parked: parked tasks were cancelled.
-- Safe: the tasks are locked;
--     rows are never updated, so they are where they were found.
-- Index: parked_task.
delete from stepwell.parked where ctid = any(array(
    select found.at from unnest($1::uuid[], $2::int[]) as gone (run, node)
    cross join lateral (
        select parked.ctid as at from stepwell.parked
        where parked.run = gone.run and parked.node = gone.node
        offset 0) as found))
