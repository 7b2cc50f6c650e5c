-- forget_throttled: held-back tasks were cancelled.
-- Safe: the tasks are locked.
-- Index: throttled_task.
delete from stepwell.throttled
using unnest($1::uuid[], $2::int[]) as gone (run, node)
where throttled.run = gone.run and throttled.node = gone.node
