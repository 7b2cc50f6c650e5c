-- Who leads.

-- name: read_leader
-- With the lock of its process, if it is a worker as well.
select leader.worker, leader.epoch, leader.until, worker.process_lock
from leader left join worker on worker.id = leader.worker
where one = 1

-- name: set_leader
insert into leader (one, worker, epoch, until) values (1, ?1, ?2, ?3)
on conflict (one) do update set worker = excluded.worker, epoch = excluded.epoch,
    until = excluded.until

-- name: delete_leader
delete from leader where one = 1 and epoch = ?1
