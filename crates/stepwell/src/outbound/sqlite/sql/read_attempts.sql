-- read_attempts: the attempts of a run in the order they ended.
-- Safe: read only.
-- Index: primary key of attempt.
select node, attempt, attempt.state, worker.id, token, queued_at, started_at, ended_at,
    first_event,
    with_queued, failure, retry, notes
from attempt join worker on worker.no = attempt.worker
where run = ?1
order by first_event
