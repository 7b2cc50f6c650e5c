-- first_suspects: the first tasks of a queue that a worker can take and that were lost before.
-- Safe: one writer at a time.
-- Index: task_lost, in fair order: without, a queue without suspects would be read to its end.
select order_key, number, losses, run.key, node
from task indexed by task_lost cross join run on run.no = task.run
where queue = ?1 and losses > 0
    and task.definition in (select definition from serve where worker = ?2)
    and losses >= ?3
order by order_key, number
limit ?4
