-- own_claims: which of these claims still hold, for this worker.
-- Safe: read only.
-- Index: primary key of task.
select task.run, task.node, task.token
from unnest($1::uuid[], $2::int[], $3::uuid[]) as asked (run, node, token)
join stepwell.task on task.run = asked.run and task.node = asked.node and task.token = asked.token
where task.state = 2 and task.worker = $4
