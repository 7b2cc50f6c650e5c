-- dump_tasks: all tasks.
-- Safe: read only.
-- Index: whole table: for checks only.
select task.run, task.node, task.state, task.n_unmet, task.n_skipped, task.attempt, task.failures,
    task.losses, task.queued_logged, task.queued_at, task.due_at, task.started_at,
    (select worker.id from stepwell.worker where worker.no = task.worker), task.token
from stepwell.task
order by task.run, task.node
