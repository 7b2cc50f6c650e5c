-- read_run: one run.
-- Safe: read only.
-- Index: primary key of run.
select run.key, tenant.name, run.id, definition, status, n_open, n_failed, n_cancelled, cancelled,
    failure, next_event, end_event, started_at, ended_at, run.group_id, input_digest, run.no
from run join tenant using (group_id)
where key = ?1
