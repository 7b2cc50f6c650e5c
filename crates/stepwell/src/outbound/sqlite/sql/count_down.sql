-- count_down: a task that waits for one parent less, and for nothing else.
-- Safe: one writer at a time.
-- Index: primary key of task.
update task set n_unmet = ?3, n_skipped = ?4 where run = ?1 and node = ?2
