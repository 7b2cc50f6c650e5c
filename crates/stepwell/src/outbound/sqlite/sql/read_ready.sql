-- read_ready: a task that nobody has claimed, with its run.
-- Safe: one writer at a time.
-- Index: key of run, primary keys of tenant and task.
select run.key, tenant.name, run.id, run.definition, run.status, n_open, n_failed, n_cancelled,
    cancelled, failure, next_event, end_event, run.started_at, run.ended_at, run.group_id,
    input_digest, task.node, task.state, n_unmet, n_skipped, attempt, failures, losses,
    queued_logged, queued_at, due_at, queue, order_key, number, position, task.definition, run.no
from run join tenant using (group_id) join task on task.run = run.no
where run.key = ?1 and task.node = ?2 and task.state <> 2
