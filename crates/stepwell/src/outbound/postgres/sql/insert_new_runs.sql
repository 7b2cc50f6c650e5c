-- insert_new_runs: fresh runs; all of them, or none if an id is taken.
-- Safe: unique (group_id, id) fails the transaction, which is tried again with insert_runs; in key
--     order against deadlocks.
-- Index: primary key of run.
insert into stepwell.run (key, group_id, id, definition, status, n_open, n_failed, n_cancelled,
    cancelled, failure, next_event, end_event, started_at, ended_at, input_digest)
select key, group_id, id, definition, 0, n_open, 0, 0, false, null, next_event, null, $8, null,
    digest
from unnest($1::uuid[], $2::int[], $3::text[], $4::int[], $5::int[], $6::bigint[], $7::bytea[])
    as fresh (key, group_id, id, definition, n_open, next_event, digest)
order by group_id, id
