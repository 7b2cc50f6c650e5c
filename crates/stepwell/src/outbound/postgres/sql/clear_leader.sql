-- clear_leader: give leadership up; a row says that it was the caller's to give.
-- Safe: only the leader of that epoch; -1 is nobody's.
-- Index: primary key of leader.
update stepwell.leader set worker = '', epoch = -1, until = 0, seat = null
where one and epoch = $1
returning 1
