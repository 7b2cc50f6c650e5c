-- lock_open_tasks: every open task of some runs.
-- Safe: locked after their runs, in order.
-- Index: primary key of task.
select task.run, task.node, task.state, task.n_unmet, task.n_skipped, task.attempt, task.failures,
    task.losses, task.queued_logged, task.queued_at, task.due_at, task.started_at,
    task.worker, task.token
from stepwell.task
where task.run = any($1) and task.state < 5
order by task.run, task.node
for update of task
