-- forget_parked: parked tasks were cancelled.
-- Safe: the tasks are locked.
-- Index: parked_task.
delete from stepwell.parked
using unnest($1::uuid[], $2::int[]) as gone (run, node)
where parked.run = gone.run and parked.node = gone.node
