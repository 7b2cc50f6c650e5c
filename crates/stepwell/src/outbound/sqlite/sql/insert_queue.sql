-- insert_queue: a queue of a worker.
-- Safe: one writer at a time.
-- Index: primary key of worker_queue.
insert into worker_queue (worker, turn, queue) values (?1, ?2, ?3)
