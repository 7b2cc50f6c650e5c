-- find_run: the run of a tenant with this id.
-- Safe: read only.
-- Index: unique (group_id, id) of run.
select run.key, tenant.name, run.id, definition, status, n_open, n_failed, n_cancelled, cancelled,
    failure, next_event, end_event, started_at, ended_at, run.group_id, input_digest, run.no
from tenant join run using (group_id)
where tenant.name = ?1 and run.id = ?2
