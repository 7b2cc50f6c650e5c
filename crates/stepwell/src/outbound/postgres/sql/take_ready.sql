-- take_ready: tasks that leave their queue without a claim.
-- Safe: the tasks are locked, so no claim holds their rows for long.
-- Index: ready_task.
delete from stepwell.ready
using unnest($1::uuid[], $2::int[]) as gone (run, node)
where ready.run = gone.run and ready.node = gone.node
returning number, queue, definition, losses, ready.run, ready.node, group_id
