-- name: lock_tasks
-- Locked after their runs, in order; a claim that holds one is waited for. Each row comes with a
-- time as those of lock_runs do: what such a claim started is not ended before.
select {task}, {locked_at}
from unnest($1::uuid[], $2::int[]) as asked (run, node)
join stepwell.task on task.run = asked.run and task.node = asked.node
order by task.run, task.node
for update of task

-- name: lock_open_tasks
-- Locked after their runs, in order, with the time as of lock_tasks.
select {task}, {locked_at} from stepwell.task
where task.run = any($1) and task.state < {task.COMPLETED}
order by task.run, task.node
for update of task

-- name: read_some_tasks
select {task}
from unnest($1::uuid[], $2::int[]) as asked (run, node)
join stepwell.task on task.run = asked.run and task.node = asked.node

-- name: read_tasks
-- The tasks of a run, or only the open ones.
select {task}, (select worker.id from stepwell.worker where worker.no = task.worker)
from stepwell.task
where task.run = $1 and (not $2 or task.state < {task.COMPLETED})
order by task.node

-- name: dump_tasks
select {task}, (select worker.id from stepwell.worker where worker.no = task.worker)
from stepwell.task
order by task.run, task.node

-- name: insert_tasks
insert into stepwell.task ({task_names}) select * from unnest({task_arrays})

-- name: update_tasks
update stepwell.task set {task_set}
from unnest({task_change_arrays}) as c ({task_change_names})
where task.run = c.run and task.node = c.node
