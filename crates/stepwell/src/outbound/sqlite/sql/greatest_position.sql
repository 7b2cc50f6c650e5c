-- greatest_position: the greatest position of a tenant's ready tasks in a queue.
-- Safe: read only.
-- Index: ready_position.
select max(position) from ready where group_id = ?1 and queue = ?2
