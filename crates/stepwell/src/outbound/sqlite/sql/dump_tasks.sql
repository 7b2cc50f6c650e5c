-- dump_tasks: all tasks.
-- Safe: read only.
-- Index: whole table: for checks only.
select task.node, task.state, n_unmet, n_skipped, attempt, failures, losses, queued_logged,
    queued_at, due_at, task.started_at, worker.id, token, run.key
from task join run on run.no = task.run left join worker on worker.no = task.worker
order by run.key, task.node
