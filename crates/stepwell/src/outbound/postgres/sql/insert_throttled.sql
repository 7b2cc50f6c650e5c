-- insert_throttled: tasks behind their tenant's limit.
-- Safe: the tenants are locked; unique (run, node).
-- Index: primary key of throttled.
insert into stepwell.throttled (group_id, number, queue, definition, losses, run, node)
select * from unnest($1::int[], $2::bigint[], $3::text[], $4::int[], $5::int[], $6::uuid[],
    $7::int[])
