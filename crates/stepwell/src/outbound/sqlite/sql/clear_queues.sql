-- clear_queues: a worker has no queues any more.
-- Safe: one writer at a time.
-- Index: primary key of worker_queue.
delete from worker_queue where worker = ?1
