-- insert_outputs: outputs of completed tasks.
-- Safe: fenced: the tokens were checked under the runs' locks.
-- Index: primary key of output.
insert into stepwell.output (run, node, codec, bytes)
select * from unnest($1::uuid[], $2::int[], $3::text[], $4::bytea[])
