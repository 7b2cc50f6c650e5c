-- first_ready: the first tasks of a queue that a worker can take, suspects apart.
-- Safe: one writer at a time.
-- Index: task_ready, in fair order, with all columns of the task; primary key of run.
select order_key, number, losses, run.key, node
from task cross join run on run.no = task.run
where queue = ?1
    and task.definition in (select definition from serve where worker = ?2)
    and losses >= ?3 and losses < ?4
order by order_key, number
limit ?5
