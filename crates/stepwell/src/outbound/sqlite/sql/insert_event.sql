-- insert_event: an irregular event.
-- Safe: one writer; unique (run, number).
-- Index: primary key of event.
insert into event (run, number, at, node, attempt, kind) values (?1, ?2, ?3, ?4, ?5, ?6)
