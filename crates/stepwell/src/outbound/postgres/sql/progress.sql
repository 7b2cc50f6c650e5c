-- What running steps say about how far they have come.

-- name: tell_progress
-- Of tasks that are still under the claim. In the order of their keys, since two may tell at once.
insert into stepwell.progress (run, node, token, worker, told_at, text)
select task.run, task.node, task.token, task.worker, $1, told.text
from unnest($2::uuid[], $3::int[], $4::uuid[], $5::text[]) as told (run, node, token, text)
cross join lateral (
    select task.run, task.node, task.token, task.worker from stepwell.task
    where task.run = told.run and task.node = told.node and task.token = told.token
    offset 0) as task
order by task.run, task.node
on conflict (run, node) do update set token = excluded.token, worker = excluded.worker,
    told_at = excluded.told_at, text = excluded.text

-- name: delete_stale_progress
-- What tasks of a worker told in attempts that have ended. Index: progress_worker, then the primary
-- key of task for each.
delete from stepwell.progress
where worker = (select no from stepwell.worker where id = $1) and not exists (
    select from stepwell.task
    where task.run = progress.run and task.node = progress.node and task.token = progress.token
    offset 0)

-- name: delete_progress
delete from stepwell.progress where worker = any($1)

-- name: read_progress
select progress.node, progress.token, progress.told_at, progress.text
from stepwell.progress
where progress.run = $1 and exists (
    select from stepwell.task
    where task.run = progress.run and task.node = progress.node and task.token = progress.token
    offset 0)
order by progress.node
