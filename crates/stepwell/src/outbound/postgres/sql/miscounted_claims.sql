-- miscounted_claims: batches whose count is not that of the tasks they hold; there are none.
-- Safe: read only.
-- Index: whole tables: for checks only.
select claim.token from stepwell.claim
where claim.n_open <> (
    select count(*) from stepwell.task where task.token = claim.token and task.state = 2)
union all
select task.token from stepwell.task
where task.state = 2 and not exists (
    select 1 from stepwell.claim
    where claim.token = task.token and claim.worker = task.worker
        and (task.run, task.node) in (
            select held.run, held.node
            from unnest(claim.runs, claim.nodes) as held (run, node)))
