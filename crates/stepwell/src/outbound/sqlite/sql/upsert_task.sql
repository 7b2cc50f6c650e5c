-- upsert_task: a task as it is after a decision.
-- Safe: one writer; the caller has checked the claim's token.
-- Index: primary key of task.
insert into task (run, node, state, n_unmet, n_skipped, attempt, failures, losses, queued_logged,
    queued_at, due_at, started_at, worker, token)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
on conflict (run, node) do update set
    state = excluded.state, n_unmet = excluded.n_unmet, n_skipped = excluded.n_skipped,
    attempt = excluded.attempt, failures = excluded.failures, losses = excluded.losses,
    queued_logged = excluded.queued_logged, queued_at = excluded.queued_at,
    due_at = excluded.due_at, started_at = excluded.started_at, worker = excluded.worker,
    token = excluded.token
