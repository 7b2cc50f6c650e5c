-- dump_runs: all runs.
-- Safe: read only.
-- Index: whole table: for checks only.
select run.key, tenant.name, run.id, definition, status, n_open, n_failed, n_cancelled, cancelled,
    failure, next_event, end_event, started_at, ended_at, run.group_id, input_digest, run.no
from run join tenant using (group_id)
order by key
