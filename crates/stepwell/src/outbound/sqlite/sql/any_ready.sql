-- any_ready: whether anything waits in a queue of a worker, whoever may take it.
-- Safe: read only.
-- Index: primary key of worker_queue; task_ready.
select 1 from worker_queue
where worker = ?1 and exists (select 1 from task where task.queue = worker_queue.queue)
limit 1
