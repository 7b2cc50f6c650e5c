-- Where queued tasks wait: in a queue (columns of task), behind their tenant's limit, or for a
-- worker that serves them. And what the places in queues depend on: positions and frontiers.

-- name: first_ready
-- Of one service, behind a place. The cross join keeps the index task_ready outside, in fair order:
-- it has all that is looked at but the run's deadline, by the rule of `may_start`.
select {candidate_names}, run.key
from task cross join run on run.no = task.run
where queue = ?1 and task.service = ?2 and (order_key, number) > (?7, ?8)
    and losses >= ?3 and losses < ?4
    and (run.deadline is null or run.deadline > ?5 or run.status <> {run.RUNNING})
order by order_key, number
limit ?6

-- name: first_suspects
-- By the index task_lost: by task_ready, a queue without suspects would be read to its end.
select {candidate_names}, run.key
from task indexed by task_lost cross join run on run.no = task.run
where queue = ?1 and task.service = ?2 and losses > 0
    and losses >= ?3
    and (run.deadline is null or run.deadline > ?4 or run.status <> {run.RUNNING})
order by order_key, number
limit ?5

-- name: any_ready
-- That the worker could take: one that something waits for is not idle.
select 1 from serve
where worker = ?1 and exists (
    select 1 from task where task.queue = serve.queue and task.service = serve.service)
limit 1

-- name: services_in_queue
-- Those of which a task is ready, each found behind the one before.
with recursive found (service) as (
    select min(service) from task where queue = ?1
    union all
    select (select min(service) from task where queue = ?1 and task.service > found.service)
    from found where found.service is not null
)
select service from found where service is not null

-- name: ready_below
-- Last first; the caller stops at the first task it looks for.
select order_key, position from task
where queue = ?1 and service = ?2 and order_key <= ?3 and order_key >= ?4
order by order_key desc, number desc

-- name: queues_with_ready
-- Each found behind the one before.
with recursive found (queue) as (
    select min(queue) from task where queue is not null
    union all
    select (select min(task.queue) from task where task.queue > found.queue)
    from found where found.queue is not null
)
select queue from found where queue is not null

-- name: ready_at
-- The first tasks of a service in a queue, by the index task_ready.
select run.key, node from task cross join run on run.no = task.run
where queue = ?1 and service = ?2
order by order_key, task.number
limit ?3

-- name: youngest_ready
-- It reads all ready tasks, but only when a limit is lowered.
select run.key, task.node from task join run on run.no = task.run
where task.queue is not null and run.tenant_no = ?1
order by task.number desc
limit ?2

-- name: insert_throttled
insert into throttled ({throttled_names}) values ({throttled_values})

-- name: next_throttled
delete from throttled
where tenant_no = ?1 and number = (select min(number) from throttled where tenant_no = ?1)
returning {throttled_names}, (select key from run where run.no = throttled.run)

-- name: delete_throttled
delete from throttled where run = ?1 and node = ?2

-- name: count_throttled
select count(*) from throttled where tenant_no = ?1

-- name: insert_parked
insert into parked ({parked_names}) values ({parked_values})

-- name: queues_with_parked
-- Each found behind the one before.
with recursive found (queue) as (
    select min(queue) from parked
    union all
    select (select min(parked.queue) from parked where parked.queue > found.queue)
    from found where found.queue is not null
)
select queue from found where queue is not null

-- name: services_parked_in_queue
-- Each found behind the one before.
with recursive found (service) as (
    select min(service) from parked where queue = ?1
    union all
    select (select min(service) from parked where queue = ?1 and parked.service > found.service)
    from found where found.service is not null
)
select service from found where service is not null

-- name: parked_at
-- The oldest tasks of a service in a queue, by the primary key.
select {parked}, run.key from parked cross join run on run.no = parked.run
where parked.queue = ?1 and parked.service = ?2
order by parked.number
limit ?3

-- name: parked_of_node
-- The oldest tasks of a step in a queue. Index: parked_node.
select {parked}, run.key from parked cross join run on run.no = parked.run
where parked.queue = ?1 and parked.service = ?2 and parked.node = ?3
order by parked.number
limit ?4

-- name: delete_parked
delete from parked where run = ?1 and node = ?2

-- name: count_parked
select count(*) from parked where tenant_no = ?1

-- name: read_position
select last from tenant_position where tenant_no = ?1 and queue = ?2

-- name: set_position
insert into tenant_position (tenant_no, queue, last) values (?1, ?2, ?3)
on conflict (tenant_no, queue) do update set last = excluded.last

-- name: read_frontier
select position from frontier where queue = ?1

-- name: set_frontier
insert into frontier (queue, position) values (?1, ?2)
on conflict (queue) do update set position = excluded.position

-- name: dump_places
with place ({place_names}) as (
    select run, node, 'ready', queue, order_key from task where queue is not null
    union all select run, node, 'throttled', queue, 0 from throttled
    union all select run, node, 'parked', queue, 0 from parked
)
select {place}, run.key from place join run on run.no = place.run
