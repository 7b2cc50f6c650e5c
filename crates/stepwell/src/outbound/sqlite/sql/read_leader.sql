-- read_leader: who leads, in which epoch, until when, and the seat of its process if it works.
-- Safe: one writer at a time.
-- Index: primary key of leader; unique id of worker.
select leader.worker, leader.epoch, leader.until, worker.seat
from leader left join worker on worker.id = leader.worker
where one = 1
