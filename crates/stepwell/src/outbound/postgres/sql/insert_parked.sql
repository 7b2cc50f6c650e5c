-- insert_parked: tasks that nobody serves.
-- Safe: the runs are locked; unique (run, node).
-- Index: primary key of parked.
insert into stepwell.parked (queue, definition, number, group_id, losses, run, node)
select * from unnest($1::text[], $2::int[], $3::bigint[], $4::int[], $5::int[], $6::uuid[],
    $7::int[])
