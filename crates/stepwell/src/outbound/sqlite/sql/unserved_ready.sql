-- unserved_ready: ready tasks that no live worker serves.
-- Safe: one writer at a time.
-- Index: task_ready, run; it reads all ready tasks, but only when a worker comes or goes.
select run.key, node from task join run on run.no = task.run
where queue is not null and not exists (
    select 1 from serve where serve.queue = task.queue and serve.definition = task.definition)
order by number
