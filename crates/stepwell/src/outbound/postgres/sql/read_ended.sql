-- read_ended: which of these runs have ended.
-- Safe: read only.
-- Index: primary key of run.
select key, status from stepwell.run where key = any($1) and status >= 2
