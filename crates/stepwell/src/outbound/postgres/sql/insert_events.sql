-- insert_events: irregular events.
-- Safe: the runs are locked; unique (run, number).
-- Index: primary key of event.
insert into stepwell.event (run, number, at, node, attempt, kind)
select * from unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::int[], $5::int[], $6::text[])
