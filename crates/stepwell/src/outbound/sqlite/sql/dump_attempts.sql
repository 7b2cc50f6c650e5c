-- dump_attempts: all attempts in the order they ended.
-- Safe: read only.
-- Index: whole table: for checks only.
select node, attempt, attempt.state, worker.id, token, queued_at, started_at, ended_at,
    first_event,
    with_queued, failure, retry, notes, run
from attempt join worker on worker.no = attempt.worker
order by run, first_event
