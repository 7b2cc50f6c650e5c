-- list_runs: runs before a key, newest first.
-- Safe: read only.
-- Index: primary key of run.
select run.key, tenant.name, run.id, run.definition, run.status, run.n_open, run.n_failed,
    run.n_cancelled,
    run.cancelled, run.failure, run.next_event, run.end_event, run.started_at, run.ended_at,
    run.group_id, run.input_digest
from stepwell.run join stepwell.tenant using (group_id)
    join stepwell.definition on definition.id = run.definition
where run.key < $1
    and ($2::text is null or tenant.name = $2)
    and ($3::text is null or definition.workflow = $3)
    and ($4::smallint is null or run.status = $4)
order by run.key desc
limit $5
