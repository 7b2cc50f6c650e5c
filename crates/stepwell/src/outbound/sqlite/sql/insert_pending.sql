-- insert_pending: a task that waits for its parents.
-- Safe: one writer at a time; its run was stored in the same transaction.
-- Index: primary key of task.
insert into task (run, node, state, n_unmet, n_skipped, attempt, failures, losses, queued_logged)
values (?1, ?2, 0, ?3, 0, 0, 0, 0, 0)
