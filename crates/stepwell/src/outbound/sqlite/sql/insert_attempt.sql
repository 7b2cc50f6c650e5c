-- insert_attempt: a finished attempt.
-- Safe: one writer; unique (run, node, attempt).
-- Index: primary key of attempt, key of run.
insert into attempt (run, node, attempt, state, worker, token, queued_at, started_at, ended_at,
    first_event, with_queued, failure, retry, notes)
values ((select no from run where key = ?1), ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11,
    ?12, ?13, ?14)
