-- insert_throttled: a task behind its tenant's limit.
-- Safe: one writer; unique (run, node).
-- Index: primary key of throttled, key of run.
insert into throttled (group_id, number, queue, definition, losses, run, node)
values (?1, ?2, ?3, ?4, ?5, (select no from run where key = ?6), ?7)
