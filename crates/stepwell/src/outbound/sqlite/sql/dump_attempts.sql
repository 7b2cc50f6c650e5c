-- dump_attempts: every attempt, by run.
-- Safe: one snapshot.
-- Index: none; it reads all of them, for checks.
select node, attempt, attempt.state, worker.id, token, queued_at, attempt.started_at,
    attempt.ended_at,
    first_event, with_queued, attempt.failure, retry, notes, run.key
from attempt join worker on worker.no = attempt.worker join run on run.no = attempt.run
union all
select node, attempt, 0, worker.id, token, queued_at, task.started_at, task.ended_at,
    first_event, with_queued, null, null, null, run.key
from task join worker on worker.no = task.worker join run on run.no = task.run
where task.ended_at is not null
order by 14, 9
