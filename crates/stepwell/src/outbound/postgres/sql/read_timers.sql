-- read_timers: all timers.
-- Safe: read only.
-- Index: whole table: for checks only.
select run, node, due_at from stepwell.timer
