-- upsert_tasks: tasks the engine inserts, as they are after a decision.
-- Safe: the runs are locked; none of them is claimed any more.
-- Index: primary key of task.
insert into stepwell.task (run, node, state, n_unmet, n_skipped, attempt, failures, losses,
    queued_logged, queued_at, due_at)
select * from unnest($1::uuid[], $2::int[], $3::smallint[], $4::int[], $5::int[], $6::int[],
    $7::int[],
    $8::int[], $9::bool[], $10::bigint[], $11::bigint[])
on conflict (run, node) do update set state = excluded.state, n_unmet = excluded.n_unmet,
    n_skipped = excluded.n_skipped, attempt = excluded.attempt, failures = excluded.failures,
    losses = excluded.losses, queued_logged = excluded.queued_logged,
    queued_at = excluded.queued_at, due_at = excluded.due_at, started_at = null, worker = null,
    token = null
