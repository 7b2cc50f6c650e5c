-- read_queues: the queues of a worker, in turn.
-- Safe: read only.
-- Index: primary key of worker_queue.
select queue from worker_queue where worker = ?1 order by turn
