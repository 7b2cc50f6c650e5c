-- lock_leader: who leads, in which epoch, until when.
-- Safe: for update: two candidates decide one after the other; the row is always there.
-- Index: primary key of leader.
select worker, epoch, until from stepwell.leader where one for update
