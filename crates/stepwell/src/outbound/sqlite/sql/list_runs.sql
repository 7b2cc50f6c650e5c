-- list_runs: runs before a key, newest first.
-- Safe: read only.
-- Index: primary key of run.
select run.key, tenant.name, run.id, definition, status, n_open, n_failed, n_cancelled, cancelled,
    failure, next_event, end_event, started_at, ended_at, run.group_id, input_digest, run.no
from run join tenant using (group_id) join definition on definition.id = run.definition
where key < ?1
    and (?2 is null or tenant.name = ?2)
    and (?3 is null or definition.workflow = ?3)
    and (?4 is null or status = ?4)
order by key desc
limit ?5
