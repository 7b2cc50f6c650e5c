-- pass_the_turn: the next claim of a worker begins with this queue.
-- Safe: one writer at a time.
-- Index: primary key of worker.
update worker set next_turn = ?2 where no = ?1
