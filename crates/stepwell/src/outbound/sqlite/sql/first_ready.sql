-- first_ready: the first tasks of a queue that a worker can take, suspects apart.
-- Safe: one writer at a time.
-- Index: task_ready, in fair order; it has all columns.
select order_key, number, losses, run, node
from task
where queue = ?1
    and definition in (select definition from serve where worker = ?2)
    and losses >= ?3 and losses < ?4
order by order_key, number
limit ?5
