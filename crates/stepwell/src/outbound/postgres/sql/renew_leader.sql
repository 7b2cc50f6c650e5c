-- renew_leader: go on leading; a row says that it is the caller's term, and which.
-- Safe: only the leader itself, while its term runs and its connection holds the lock.
-- Index: primary key of leader.
update stepwell.leader
set until = coalesce($3, (extract(epoch from now()) * 1000000)::bigint) + $2
where one and worker = $1 and seat = pg_backend_pid()
    and until > coalesce($3, (extract(epoch from now()) * 1000000)::bigint)
returning epoch
