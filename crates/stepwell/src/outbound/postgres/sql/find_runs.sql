-- find_runs: runs by tenant and id.
-- Safe: read after the insert that met them, by a later statement.
-- Index: unique (group_id, id) of run.
select run.key, tenant.name, run.id, run.definition, run.status, run.n_open, run.n_failed,
    run.n_cancelled,
    run.cancelled, run.failure, run.next_event, run.end_event, run.started_at, run.ended_at,
    run.group_id, run.input_digest
from unnest($1::text[], $2::text[]) as asked (tenant, id)
join stepwell.tenant on tenant.name = asked.tenant
join stepwell.run on run.group_id = tenant.group_id and run.id = asked.id
