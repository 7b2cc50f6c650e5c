-- read_claims: the claims of workers.
-- Safe: read only; a task that was claimed anew has another token.
-- Index: claim_worker, primary key of task for each claim.
select claim.worker, held.run, held.node, claim.token, task.losses
from stepwell.claim
cross join lateral unnest(claim.runs, claim.nodes) as held (run, node)
cross join lateral (
    select task.losses from stepwell.task
    where task.run = held.run and task.node = held.node and task.token = claim.token
    offset 0) as task
where claim.worker = any($1)
order by claim.worker, held.run, held.node
