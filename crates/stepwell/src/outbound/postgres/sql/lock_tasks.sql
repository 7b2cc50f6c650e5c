-- lock_tasks: the tasks a decision needs.
-- Safe: locked after their runs, in order; a claim that holds one is waited for.
-- Index: primary key of task.
select task.run, task.node, task.state, task.n_unmet, task.n_skipped, task.attempt, task.failures,
    task.losses, task.queued_logged, task.queued_at, task.due_at, task.started_at,
    task.worker, task.token
from unnest($1::uuid[], $2::int[]) as asked (run, node)
join stepwell.task on task.run = asked.run and task.node = asked.node
order by task.run, task.node
for update of task
