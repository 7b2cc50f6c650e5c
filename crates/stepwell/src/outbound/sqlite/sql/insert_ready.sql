-- insert_ready: a task that can be claimed now.
-- Safe: one writer; unique (run, node).
-- Index: primary key of ready.
insert into ready (queue, order_key, number, position, group_id, definition, losses, run, node)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
