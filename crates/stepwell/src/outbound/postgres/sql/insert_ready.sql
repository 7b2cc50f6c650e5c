-- insert_ready: tasks that can be claimed now.
-- Safe: the runs are locked; unique (run, node).
-- Index: primary key of ready.
insert into stepwell.ready (queue, order_key, number, position, group_id, definition, losses,
    run, node)
select * from unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::int[], $6::int[],
    $7::int[], $8::uuid[], $9::int[])
