-- read_claims: the claims of a worker.
-- Safe: read only.
-- Index: task_claimed.
select run, node, token, losses from task where worker = ?1 and state = 2 order by run, node
