-- ready_below: the tasks of a queue between two places, last first.
-- Safe: one writer at a time.
-- Index: task_ready, in fair order; the caller stops at the first task it looks for.
select order_key, position from task
where queue = ?1 and order_key <= ?2 and order_key >= ?3
order by order_key desc, number desc
