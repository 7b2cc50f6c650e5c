-- read_timers: all timers.
-- Safe: read only.
-- Index: whole table: for checks only.
select run.key, node, due_at from timer join run on run.no = timer.run
