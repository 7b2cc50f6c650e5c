-- complete_task: a running task completes; its claim stays in the row as its last attempt.
-- Safe: one writer at a time; the caller has checked the claim's token.
-- Index: primary key of task, task_claimed; task_ready is not touched.
update task set state = 5, queued_logged = 1, ended_at = ?3, first_event = ?4, with_queued = ?5,
    output_codec = ?6, output = ?7
where run = ?1 and node = ?2
