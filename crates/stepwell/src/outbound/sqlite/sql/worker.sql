-- Workers, their queues and what they serve.

-- name: upsert_worker
insert into worker (id, lease_micros, seen_at, state, process_lock)
values (?1, ?2, ?3, {worker.ALIVE}, ?4)
on conflict (id) do update set lease_micros = excluded.lease_micros, seen_at = excluded.seen_at,
    n_beats = n_beats + 1, state = {worker.ALIVE}, next_turn = 0,
    process_lock = excluded.process_lock
returning no

-- name: beat
update worker set seen_at = ?2, n_beats = n_beats + 1
where id = ?1 and state = {worker.ALIVE}
returning no

-- name: mark_worker_leaving
update worker set state = {worker.LEAVING} where id = ?1 and state = {worker.ALIVE} returning no

-- name: end_worker
-- Nothing is left to be taken from it. If it left by itself it is gone, else dead.
update worker
set state = case state when {worker.LEAVING} then {worker.GONE} else {worker.DEAD} end,
    in_trial = 0
where no = ?1

-- name: find_worker
select no, next_turn, in_trial from worker where id = ?1 and state = {worker.ALIVE}

-- name: read_worker_no
select no from worker where id = ?1

-- name: read_workers
select no, id from worker where state < {worker.DEAD}

-- name: read_lives
select id, n_beats, lease_micros, state = {worker.LEAVING}, process_lock from worker
where state < {worker.DEAD}
order by no

-- name: find_silent
-- If nothing was heard of it since that beat.
select no from worker where id = ?1 and n_beats = ?2 and state < {worker.DEAD}

-- name: set_next_turn
update worker set next_turn = ?2 where no = ?1

-- name: set_in_trial
update worker set in_trial = ?2 where no = ?1

-- name: read_crews
-- How many live workers have a service of this one, and how many of the others among them hold a
-- trial; then the same for each of its services in each of its queues.
select count(*), count(*) filter (where worker.in_trial and worker.no <> ?1)
from (
    select distinct service, worker from serve
    where service in (select service from serve where worker = ?1)) as served
join worker on worker.no = served.worker and worker.state = {worker.ALIVE}
group by served.service
union all
select count(*), count(*) filter (where worker.in_trial and worker.no <> ?1)
from serve as mine
join serve as served on served.queue = mine.queue and served.service = mine.service
join worker on worker.no = served.worker and worker.state = {worker.ALIVE}
where mine.worker = ?1
group by mine.queue, mine.service

-- name: set_taken_at
update worker set taken_at_wake = ?2 where id = ?1

-- name: taken_since
select id from worker where state < {worker.DEAD} and taken_at_wake > ?1

-- name: insert_queue
insert into worker_queue (worker, turn, queue) values (?1, ?2, ?3)

-- name: read_queues
select queue from worker_queue where worker = ?1 order by turn

-- name: delete_queues
delete from worker_queue where worker = ?1

-- name: insert_service
insert or ignore into serve (worker, queue, service) values (?1, ?2, ?3)

-- name: read_services
select distinct service from serve where worker = ?1

-- name: is_served
select 1 from serve where queue = ?1 and service = ?2 limit 1

-- name: delete_services
delete from serve where worker = ?1
