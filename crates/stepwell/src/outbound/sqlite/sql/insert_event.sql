-- insert_event: an irregular event.
-- Safe: one writer; unique (run, number).
-- Index: primary key of event, key of run.
insert into event (run, number, at, node, attempt, kind)
values ((select no from run where key = ?1), ?2, ?3, ?4, ?5, ?6)
