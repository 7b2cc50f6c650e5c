-- insert_run: a fresh run.
-- Safe: one writer; unique (group_id, id).
-- Index: primary key of run.
insert into run (key, group_id, id, definition, status, n_open, n_failed, n_cancelled, cancelled,
    next_event, started_at, input_digest, input_codec, input)
values (?1, ?2, ?3, ?4, ?5, ?6, 0, 0, 0, ?7, ?8, ?9, ?10, ?11)
on conflict do nothing
