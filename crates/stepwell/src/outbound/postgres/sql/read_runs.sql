-- read_runs: some runs.
-- Safe: read only.
-- Index: primary key of run.
select run.key, tenant.name, run.id, run.definition, run.status, run.n_open, run.n_failed,
    run.n_cancelled,
    run.cancelled, run.failure, run.next_event, run.end_event, run.started_at, run.ended_at,
    run.group_id, run.input_digest
from stepwell.run join stepwell.tenant using (group_id)
where run.key = any($1)
