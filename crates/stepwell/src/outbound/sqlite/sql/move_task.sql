-- move_task: a task that stood in no queue and enters none, with as many losses as before.
-- Safe: one writer at a time; the caller has checked the claim's token.
-- Index: primary key of task, task_claimed; task_ready is not touched.
update task set state = ?3, n_unmet = ?4, n_skipped = ?5, attempt = ?6, failures = ?7,
    queued_logged = ?8, queued_at = ?9, due_at = ?10, started_at = ?11, worker = ?12, token = ?13
where run = ?1 and node = ?2
