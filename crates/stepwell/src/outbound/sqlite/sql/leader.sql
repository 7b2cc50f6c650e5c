-- Who leads.

-- name: read_leader
-- With the lock of its process, if it is a worker as well.
select leader.worker, leader.epoch, leader.until, leader.ttl_micros, worker.process_lock
from leader left join worker on worker.id = leader.worker
where one = 1

-- name: set_leader
insert into leader (one, worker, epoch, until, ttl_micros) values (1, ?1, ?2, ?3, ?4)
on conflict (one) do update set worker = excluded.worker, epoch = excluded.epoch,
    until = excluded.until, ttl_micros = excluded.ttl_micros

-- name: delete_leader
delete from leader where one = 1 and epoch = ?1
