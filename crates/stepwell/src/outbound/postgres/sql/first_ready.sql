-- first_ready: the first tasks of a queue that a worker can take, one suspect among them if it may,
--     locked for it, and where their rows are.
-- Safe: skip locked keeps workers apart and never waits; the task must still be queued; of what the
--     queue is said to have passed nothing is left.
-- Index: primary key of ready, in fair order, from what was passed on; ready_suspect, for without
--     it a claim would look through the whole queue for one; primary key of passed.
with passed as materialized (
    select coalesce((
        select order_key from stepwell.passed where queue = $1
        order by round desc limit 1), 0) as order_key
), first as materialized (
    select r.order_key, r.number, r.position, r.losses, r.run, r.node, r.definition, r.group_id,
        r.ctid as ready_at, t.ctid as task_at
    from stepwell.ready r join stepwell.task t on t.run = r.run and t.node = r.node
    where r.queue = $1 and r.order_key >= (select order_key from passed)
        and r.definition = any($2) and r.losses < $3
        and t.state = 1 and t.due_at is null
    order by r.order_key, r.number
    limit $4
    for update of r, t skip locked
), suspect as materialized (
    select r.order_key, r.number, r.position, r.losses, r.run, r.node, r.definition, r.group_id,
        r.ctid as ready_at, t.ctid as task_at
    from stepwell.ready r join stepwell.task t on t.run = r.run and t.node = r.node
    where r.queue = $1 and r.order_key >= (select order_key from passed)
        and r.definition = any($2) and r.losses > 0 and r.losses >= $3
        and t.state = 1 and t.due_at is null
    order by r.order_key, r.number
    limit $5
    for update of r, t skip locked
)
select order_key, number, position, losses, run, node, definition, group_id, ready_at::text,
    task_at::text
from (select * from first union all select * from suspect) as both_kinds
order by order_key, number
