-- claim_tasks: hand chosen tasks to one worker.
-- Safe: their rows are locked by first_ready, so they are where it found them; the token turns
--     late writes into no-ops.
-- Index: rows are found by their place; primary keys of run and claim.
with chosen as materialized (
    select task_at::tid as task_at, turn
    from unnest($1::text[]) with ordinality as c (task_at, turn)
), taken as (
    delete from stepwell.ready where ctid = any($2::text[]::tid[])
), claimed as (
    -- It may have been queued by a transaction that began later than this one.
    update stepwell.task set state = 2, attempt = attempt + 1, worker = $3, token = $4,
    started_at = greatest($5, queued_at)
    from chosen
    where task.ctid = chosen.task_at and task.state = 1
    returning task.run, task.node, task.attempt, task.losses, chosen.turn
), held as (
    insert into stepwell.claim (token, worker, runs, nodes, n_open)
    select $4, $3, array_agg(run order by turn), array_agg(node order by turn), count(*)
    from claimed having count(*) > 0
)
select claimed.turn, claimed.attempt, claimed.losses, run.id
from claimed
join stepwell.run on run.key = claimed.run
order by claimed.turn
