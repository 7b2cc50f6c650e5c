-- read_claims: the claims of workers.
-- Safe: read only.
-- Index: task_claimed.
select worker, run, node, token, losses from stepwell.task
where worker = any($1) and state = 2
order by worker, run, node
