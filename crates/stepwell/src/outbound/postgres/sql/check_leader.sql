-- check_leader: whether this epoch is the current one.
-- Safe: for share: a take-over waits for writes that were fenced by the old epoch.
-- Index: primary key of leader.
select 1 from stepwell.leader where one and epoch = $1 for share
