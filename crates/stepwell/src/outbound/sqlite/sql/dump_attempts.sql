-- dump_attempts: every attempt, by run.
-- Safe: one snapshot.
-- Index: none; it reads all of them, for checks.
select node, attempt, attempt.state, worker.id, token, queued_at, started_at, ended_at,
    first_event, with_queued, failure, retry, notes, run
from attempt join worker on worker.no = attempt.worker
union all
select node, attempt, 0, worker.id, token, queued_at, started_at, ended_at,
    first_event, with_queued, null, null, null, run
from task join worker on worker.no = task.worker
where ended_at is not null
order by 14, 9
