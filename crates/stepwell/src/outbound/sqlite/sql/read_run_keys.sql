-- read_run_keys: the keys of all runs.
-- Safe: read only.
-- Index: primary key of run.
select key from run order by key
