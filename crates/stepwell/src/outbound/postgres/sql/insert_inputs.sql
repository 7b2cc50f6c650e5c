-- insert_inputs: inputs of fresh runs.
-- Safe: the runs are ours until the commit.
-- Index: primary key of input.
insert into stepwell.input (run, codec, bytes)
select * from unnest($1::uuid[], $2::text[], $3::bytea[])
