-- claim_tasks: hand chosen tasks to one worker.
-- Safe: their rows are locked by first_ready; the token turns late writes into no-ops.
-- Index: primary key of task, ready_task.
with chosen as materialized (
    select * from unnest($1::uuid[], $2::int[]) with ordinality as c (run, node, turn)
), taken as (
    delete from stepwell.ready using chosen
    where ready.run = chosen.run and ready.node = chosen.node
), claimed as (
    -- It may have been queued by a transaction that began later than this one.
    update stepwell.task set state = 2, attempt = attempt + 1, worker = $3, token = $4,
    started_at = greatest($5, queued_at)
    from chosen
    where task.run = chosen.run and task.node = chosen.node and task.state = 1
    returning task.run, task.node, task.attempt, task.losses, chosen.turn
)
select claimed.run, claimed.node, claimed.attempt, claimed.losses, tenant.name, run.id,
    run.definition
from claimed
join stepwell.run on run.key = claimed.run
join stepwell.tenant on tenant.group_id = run.group_id
order by claimed.turn
