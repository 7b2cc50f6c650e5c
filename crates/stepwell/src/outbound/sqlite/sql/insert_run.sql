-- insert_run: a fresh run.
-- Safe: one writer; unique (group_id, id).
-- Index: primary key of run.
insert into run (key, group_id, id, definition, status, n_open, n_failed, n_cancelled, cancelled,
    failure, next_event, end_event, started_at, ended_at, input_digest)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)
