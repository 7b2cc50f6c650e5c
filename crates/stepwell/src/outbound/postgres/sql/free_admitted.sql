-- free_admitted: slots that came free.
-- Safe: the runs are locked;
--     rows are never updated, so they are where they were found.
-- Index: primary key of admitted.
delete from stepwell.admitted where ctid = any(array(
    select found.at from unnest($1::uuid[], $2::int[]) as gone (run, node)
    cross join lateral (
        select admitted.ctid as at from stepwell.admitted
        where admitted.run = gone.run and admitted.node = gone.node
        offset 0) as found))
returning group_id
