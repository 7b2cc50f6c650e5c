-- update_run: a run after a decision.
-- Safe: one writer at a time.
-- Index: primary key of run.
update run set status = ?2, n_open = ?3, n_failed = ?4, n_cancelled = ?5, cancelled = ?6,
    failure = ?7,
    next_event = ?8, end_event = ?9, ended_at = ?10
where no = ?1
