-- set_leader: take or keep leadership.
-- Safe: the row is locked.
-- Index: primary key of leader.
update stepwell.leader set worker = $1, epoch = $2, until = $3, seat = $4 where one
