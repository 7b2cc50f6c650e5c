-- insert_parked: a task that nobody serves.
-- Safe: one writer; unique (run, node).
-- Index: primary key of parked, key of run.
insert into parked (queue, definition, number, group_id, losses, run, node)
values (?1, ?2, ?3, ?4, ?5, (select no from run where key = ?6), ?7)
