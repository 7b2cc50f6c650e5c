-- read_ended: whether a run has ended, and how.
-- Safe: read only.
-- Index: primary key of run.
select status from run where key = ?1 and status >= 2
