-- pass_the_turn: the next claim of a worker begins with this queue.
-- Safe: the worker's own row.
-- Index: primary key of worker.
update stepwell.worker set next_turn = $2 where no = $1
