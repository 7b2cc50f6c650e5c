-- insert_admitted: slots that limited tenants use.
-- Safe: the tenants are locked; unique (run, node).
-- Index: primary key of admitted.
insert into stepwell.admitted (group_id, number, run, node)
select * from unnest($1::int[], $2::bigint[], $3::uuid[], $4::int[])
on conflict (run, node) do nothing
