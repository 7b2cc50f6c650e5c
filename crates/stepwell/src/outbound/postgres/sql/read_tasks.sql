-- read_tasks: the tasks of a run, or only the open ones.
-- Safe: read only.
-- Index: primary key of task.
select task.run, task.node, task.state, task.n_unmet, task.n_skipped, task.attempt, task.failures,
    task.losses, task.queued_logged, task.queued_at, task.due_at, task.started_at,
    (select worker.id from stepwell.worker where worker.no = task.worker), task.token
from stepwell.task
where task.run = $1 and (not $2 or task.state < 5)
order by task.node
