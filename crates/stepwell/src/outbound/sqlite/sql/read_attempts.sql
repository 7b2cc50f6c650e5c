-- read_attempts: the attempts of a run in the order they ended.
-- Safe: one snapshot.
-- Index: primary keys of attempt and task, key of run.
select node, attempt, attempt.state, worker.id, token, queued_at, started_at, ended_at,
    first_event, with_queued, failure, retry, notes
from attempt join worker on worker.no = attempt.worker
where run = (select no from run where key = ?1)
union all
select node, attempt, 0, worker.id, token, queued_at, started_at, ended_at,
    first_event, with_queued, null, null, null
from task join worker on worker.no = task.worker
where run = (select no from run where key = ?1) and ended_at is not null
order by 9
