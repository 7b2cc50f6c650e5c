-- read_leader: who leads, in which epoch, until when.
-- Safe: one writer at a time.
-- Index: primary key of leader.
select worker, epoch, until from leader where one = 1
