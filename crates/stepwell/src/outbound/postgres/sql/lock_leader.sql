-- lock_leader: who leads, in which epoch, until when, and by which server process's lock.
-- Safe: for update: two candidates decide one after the other; the row is always there.
-- Index: primary key of leader.
select worker, epoch, until, seat from stepwell.leader where one for update
