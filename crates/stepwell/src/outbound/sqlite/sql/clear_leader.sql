-- clear_leader: give leadership up.
-- Safe: one writer; only the leader of that epoch.
-- Index: primary key of leader.
delete from leader where one = 1 and epoch = ?1
