-- first_ready: the first tasks of a queue that a worker can take, suspects apart.
-- Safe: one writer at a time.
-- Index: primary key of ready, in fair order.
select order_key, number, position, group_id, definition, losses, run, node
from ready
where queue = ?1
    and definition in (select definition from serve where worker = ?2)
    and losses >= ?3 and losses < ?4
order by order_key, number
limit ?5
