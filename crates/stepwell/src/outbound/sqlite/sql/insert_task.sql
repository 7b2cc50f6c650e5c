-- insert_task: a task that was not there before.
-- Safe: one writer at a time; its run was stored in the same transaction.
-- Index: primary key of task, task_ready, task_claimed.
insert into task (run, node, state, n_unmet, n_skipped, attempt, failures, losses, queued_logged,
    queued_at, due_at, started_at, worker, token, queue, order_key, number, position, definition)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)
