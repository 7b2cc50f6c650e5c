-- claim_tasks: hand chosen tasks to one worker, and move its frontiers of queues on.
-- Safe: their rows are locked by first_ready, so they are where it found them; the token turns
--     late writes into no-ops.
-- Index: rows are found by their place; primary keys of run, claim and frontier.
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
), raised as (
    -- The worker's own rows; they never go back.
    insert into stepwell.frontier (queue, worker, position)
    select queue, $3, position from unnest($6::text[], $7::bigint[]) as f (queue, position)
    on conflict (queue, worker) do update
    set position = greatest(frontier.position, excluded.position)
)
select claimed.turn, claimed.attempt, claimed.losses, run.id
from claimed
join stepwell.run on run.key = claimed.run
order by claimed.turn
