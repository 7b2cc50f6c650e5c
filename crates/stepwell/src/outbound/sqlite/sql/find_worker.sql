-- find_worker: the number of a live worker, and whose turn it is among its queues.
-- Safe: read only.
-- Index: unique id of worker.
select no, next_turn from worker where id = ?1 and state = 0
