-- youngest_ready: the youngest ready tasks of a tenant.
-- Safe: one writer at a time.
-- Index: task_ready, run; it reads all ready tasks, but only when a limit is lowered.
select run.key, task.node from task join run on run.no = task.run
where task.queue is not null and run.group_id = ?1
order by task.number desc
limit ?2
