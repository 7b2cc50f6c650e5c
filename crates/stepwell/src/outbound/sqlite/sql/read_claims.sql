-- read_claims: the claims of a worker.
-- Safe: read only.
-- Index: task_claimed, primary key of run.
select run.key, node, token, losses from task join run on run.no = task.run
where worker = ?1 and state = 2
order by run.key, node
