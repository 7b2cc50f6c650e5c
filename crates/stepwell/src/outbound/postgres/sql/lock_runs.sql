-- lock_runs: runs before they are changed.
-- Safe: locked in key order, by a statement of its own: what is read to decide is read later.
-- Index: primary key of run.
select run.key, '' as tenant, run.id, run.definition, run.status, run.n_open, run.n_failed,
    run.n_cancelled,
    run.cancelled, run.failure, run.next_event, run.end_event, run.started_at, run.ended_at,
    run.group_id, run.input_digest
from stepwell.run
where run.key = any($1)
order by run.key
for update of run
