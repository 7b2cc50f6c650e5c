-- insert_attempts: finished attempts.
-- Safe: the tasks are locked; unique (run, node, attempt).
-- Index: primary key of attempt.
insert into stepwell.attempt (run, node, attempt, state, worker, token, queued_at, started_at,
    ended_at, first_event, with_queued, failure, retry, notes)
select a.run, a.node, a.attempt, a.state, a.worker, a.token, a.queued_at, a.started_at,
    greatest($14, a.started_at),
    a.first_event, a.with_queued, a.failure, a.retry, a.notes
from unnest($1::uuid[], $2::int[], $3::int[], $4::smallint[], $5::bigint[], $6::uuid[],
    $7::bigint[],
    $8::bigint[], $9::bigint[], $10::bool[], $11::text[], $12::text[], $13::text[])
    as a (run, node, attempt, state, worker, token, queued_at, started_at, first_event,
    with_queued,
    failure, retry, notes)
