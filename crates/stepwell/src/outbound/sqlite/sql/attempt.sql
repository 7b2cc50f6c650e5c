-- Attempts. The last one of a task that completed and noted nothing is in the task's own row. What
-- reads attempts gives their columns and then the worker's id.

-- name: insert_attempt
insert into attempt ({attempt_names}) values ({attempt_values})

-- name: find_attempt
select state from attempt
where run = (select no from run where key = ?1) and node = ?2 and token = ?3
union all
select {attempt.COMPLETED} from task
where run = (select no from run where key = ?1) and node = ?2 and token = ?3
    and ended_at is not null

-- name: read_attempts
select {attempt}, worker.id from attempt join worker on worker.no = attempt.worker
where run = (select no from run where key = ?1)
union all
select run, node, attempt, {attempt.COMPLETED}, worker, token, queued_at, started_at, ended_at,
    first_event, with_queued, null, null, null, worker.id
from task join worker on worker.no = task.worker
where run = (select no from run where key = ?1) and ended_at is not null
order by first_event

-- name: dump_attempts
select {attempt}, worker.id, run.key
from attempt join worker on worker.no = attempt.worker join run on run.no = attempt.run
union all
select run, node, attempt, {attempt.COMPLETED}, worker, token, queued_at, task.started_at,
    task.ended_at, first_event, with_queued, null, null, null, worker.id, run.key
from task join worker on worker.no = task.worker join run on run.no = task.run
where task.ended_at is not null
order by run.key, first_event
