-- What running steps say about how far they have come.

-- name: tell_progress
insert into progress (run, node, token, worker, told_at, text)
select run, node, token, worker, ?4, ?5 from task
where run = (select no from run where key = ?1) and node = ?2 and token = ?3
    and state = {task.RUNNING}
on conflict (run, node) do update set token = excluded.token, worker = excluded.worker,
    told_at = excluded.told_at, text = excluded.text

-- name: delete_stale_progress
-- What tasks of a worker told in attempts that have ended.
delete from progress
where worker = (select no from worker where id = ?1) and not exists (
    select 1 from task where task.run = progress.run and task.node = progress.node
        and task.token = progress.token and task.state = {task.RUNNING})

-- name: delete_progress
delete from progress where worker = ?1

-- name: read_progress
select node, token, told_at, text from progress
where run = (select no from run where key = ?1) and exists (
    select 1 from task where task.run = progress.run and task.node = progress.node
        and task.token = progress.token and task.state = {task.RUNNING})
order by node
