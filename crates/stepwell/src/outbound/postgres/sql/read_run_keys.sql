-- read_run_keys: the keys of all runs.
-- Safe: read only.
-- Index: whole table: for checks only.
select key from stepwell.run order by key
