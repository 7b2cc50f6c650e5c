-- advance_run: a run that goes on, with its counters.
-- Safe: one writer at a time.
-- Index: primary key of run.
update run set n_open = ?2, next_event = ?3 where no = ?1
