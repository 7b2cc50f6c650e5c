-- Tasks. What reads one gives its columns and then the id of the worker that holds it. There is one
-- writer at a time, and it has checked the claim's token before it changes a task.

-- name: insert_pending
-- Most tasks of a run begin like this, so what is the same in all of them is no parameter.
insert into task (run, node, state, n_unmet, n_skipped, attempt, failures, losses, queued_logged)
values (?1, ?2, {task.PENDING}, ?3, 0, 0, 0, 0, 0)

-- name: insert_task
insert into task ({task_names}) values ({task_values})

-- name: count_down
update task set n_unmet = ?3, n_skipped = ?4 where run = ?1 and node = ?2

-- name: claim_task
update task set state = {task.RUNNING}, attempt = ?3, started_at = ?4, worker = ?5, token = ?6,
    queue = null, order_key = null, number = null, position = null, service = null
where run = ?1 and node = ?2

-- name: move_task
-- The indexes of ready tasks are not touched: losses and the place in a queue stay as they are.
update task set state = ?3, n_unmet = ?4, n_skipped = ?5, attempt = ?6, failures = ?7,
    queued_logged = ?8, queued_at = ?9, due_at = ?10, started_at = ?11, worker = ?12, token = ?13,
    resumed_by = ?14
where run = ?1 and node = ?2

-- name: complete_task
-- The claim stays in the row as its last attempt. The indexes of ready tasks are not touched.
update task set state = {task.COMPLETED}, queued_logged = 1, ended_at = ?3, first_event = ?4,
    with_queued = ?5, output_codec = ?6, output = ?7, resumed_by = null
where run = ?1 and node = ?2

-- name: update_task
update task set {task_updates} where run = ?1 and node = ?2

-- name: read_task
select {task}, worker.id from task left join worker on worker.no = task.worker
where run = ?1 and node = ?2

-- name: read_tasks
select {task}, worker.id from task left join worker on worker.no = task.worker
where run = (select no from run where key = ?1) and (?2 = 0 or task.state < {task.COMPLETED})
order by node

-- name: read_ready
-- A task that nobody holds, so that its columns end without a worker, behind those of its run.
select {run}, tenant.name, {task}
from run join tenant using (tenant_no) join task on task.run = run.no
where run.key = ?1 and task.node = ?2 and task.state <> {task.RUNNING}

-- name: read_claims
select run.key, node, token, losses from task join run on run.no = task.run
where worker = ?1 and state = {task.RUNNING}
order by run.key, node

-- name: read_result
select {result_names} from task where run = (select no from run where key = ?1) and node = ?2

-- name: read_results_between
select {result_names} from task
where run = (select no from run where key = ?1) and node between ?2 and ?3
order by node

-- name: dump_tasks
select {task}, worker.id, run.key
from task join run on run.no = task.run left join worker on worker.no = task.worker
order by run.key, task.node
