-- read_tasks: the tasks of a run, or only the open ones.
-- Safe: read only.
-- Index: primary key of task, key of run.
select task.node, task.state, n_unmet, n_skipped, attempt, failures, losses, queued_logged,
    queued_at, due_at, started_at, worker.id, token, queue, order_key, number, position, definition
from task left join worker on worker.no = task.worker
where run = (select no from run where key = ?1) and (?2 = 0 or task.state < 5)
order by node
