-- update_tasks: tasks after a decision; those that run were handed over to one worker.
-- Safe: the runs and tasks are locked.
-- Index: primary key of task.
update stepwell.task set state = c.state, n_unmet = c.n_unmet, n_skipped = c.n_skipped,
    attempt = c.attempt, failures = c.failures, losses = c.losses,
    queued_logged = c.queued_logged, queued_at = c.queued_at, due_at = c.due_at,
    worker = case when c.state = 2 then $12::bigint end,
    token = case when c.state = 2 then $13::uuid end,
    started_at = case when c.state = 2 then $14::bigint end
from unnest($1::uuid[], $2::int[], $3::smallint[], $4::int[], $5::int[], $6::int[], $7::int[],
    $8::int[], $9::bool[], $10::bigint[], $11::bigint[])
    as c (run, node, state, n_unmet, n_skipped, attempt, failures, losses, queued_logged,
    queued_at, due_at)
where task.run = c.run and task.node = c.node
