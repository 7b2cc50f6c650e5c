-- update_runs: runs after a decision.
-- Safe: the runs are locked.
-- Index: primary key of run.
update stepwell.run set status = c.status, n_open = c.n_open, n_failed = c.n_failed,
    n_cancelled = c.n_cancelled, cancelled = c.cancelled, failure = c.failure,
    next_event = c.next_event, end_event = c.end_event, ended_at = c.ended_at
from unnest($1::uuid[], $2::smallint[], $3::int[], $4::int[], $5::int[], $6::bool[], $7::text[],
    $8::bigint[], $9::bigint[], $10::bigint[])
    as c (key, status, n_open, n_failed, n_cancelled, cancelled, failure, next_event, end_event,
    ended_at)
where run.key = c.key
