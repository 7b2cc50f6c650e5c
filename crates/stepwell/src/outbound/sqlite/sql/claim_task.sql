-- claim_task: a task goes from its queue to a worker.
-- Safe: one writer at a time, which has found it in the queue.
-- Index: primary key of task, task_ready, task_claimed.
update task set state = 2, attempt = ?3, started_at = ?4, worker = ?5, token = ?6, queue = null,
    order_key = null, number = null, position = null, definition = null
where run = ?1 and node = ?2
