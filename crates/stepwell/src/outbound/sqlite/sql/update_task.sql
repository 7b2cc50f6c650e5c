-- update_task: a task as it is after a decision, with its place in a queue.
-- Safe: one writer at a time; the caller has checked the claim's token.
-- Index: primary key of task, task_ready, task_claimed.
update task set state = ?3, n_unmet = ?4, n_skipped = ?5, attempt = ?6, failures = ?7, losses = ?8,
    queued_logged = ?9, queued_at = ?10, due_at = ?11, started_at = ?12, worker = ?13, token = ?14,
    queue = ?15, order_key = ?16, number = ?17, position = ?18, definition = ?19
where run = ?1 and node = ?2
