-- read_task: one task.
-- Safe: read only.
-- Index: primary key of task.
select task.node, task.state, n_unmet, n_skipped, attempt, failures, losses, queued_logged,
    queued_at, due_at, started_at, worker.id, token, queue, order_key, number, position, definition
from task left join worker on worker.no = task.worker
where run = ?1 and node = ?2
