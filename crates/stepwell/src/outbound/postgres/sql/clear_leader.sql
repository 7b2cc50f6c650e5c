-- clear_leader: give leadership up.
-- Safe: only the leader of that epoch; -1 is nobody's.
-- Index: primary key of leader.
update stepwell.leader set worker = '', epoch = -1, until = 0 where one and epoch = $1
