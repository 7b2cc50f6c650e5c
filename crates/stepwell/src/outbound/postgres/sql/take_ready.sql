-- take_ready: tasks that leave their queue without a claim.
-- Safe: the tasks are locked, so no claim holds their rows for long;
--     rows are never updated, so they are where they were found.
-- Index: ready_task.
delete from stepwell.ready where ctid = any(array(
    select found.at from unnest($1::uuid[], $2::int[]) as gone (run, node)
    cross join lateral (
        select ready.ctid as at from stepwell.ready
        where ready.run = gone.run and ready.node = gone.node
        offset 0) as found))
returning number, queue, definition, losses, run, node, group_id
