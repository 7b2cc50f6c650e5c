-- dump_tasks: all tasks.
-- Safe: read only.
-- Index: whole table: for checks only.
select task.node, task.state, n_unmet, n_skipped, attempt, failures, losses, queued_logged,
    queued_at, due_at, started_at, worker.id, token, task.run
from task left join worker on worker.no = task.worker
order by task.run, task.node
