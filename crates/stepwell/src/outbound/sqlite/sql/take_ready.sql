-- take_ready: remove a task from its queue.
-- Safe: one writer at a time.
-- Index: ready_task.
delete from ready where run = ?1 and node = ?2
returning queue, order_key, number, position, group_id, definition, losses
