-- name: insert_attempts
insert into stepwell.attempt ({attempt_names}) select * from unnest({attempt_arrays})

-- name: find_attempts
-- Read after the runs were locked, so an earlier commit of the same claim is visible.
select attempt.run, attempt.node, attempt.token, attempt.state
from unnest($1::uuid[], $2::int[], $3::uuid[]) as asked (run, node, token)
join stepwell.attempt on attempt.run = asked.run and attempt.node = asked.node
    and attempt.token = asked.token

-- name: read_attempts
select {attempt}, worker.id
from stepwell.attempt join stepwell.worker on worker.no = attempt.worker
where attempt.run = $1
order by attempt.first_event

-- name: dump_attempts
select {attempt}, worker.id
from stepwell.attempt join stepwell.worker on worker.no = attempt.worker
order by attempt.run, attempt.first_event
