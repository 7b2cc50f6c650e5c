-- name: lock_leader
-- Two candidates decide one after the other; the row is always there.
select {leader} from stepwell.leader where one for update

-- name: check_leader
-- For share: a take-over waits for writes that were fenced by the old epoch.
select 1 from stepwell.leader where one and epoch = $1 for share

-- name: renew_leader
-- Only the leader itself, while its term runs and its connection holds the lock.
update stepwell.leader set until = coalesce($3, {now}) + $2, ttl_micros = $2
where one and worker = $1 and backend_pid = pg_backend_pid()
    and until > coalesce($3, {now}) and until <= coalesce($3, {now}) + ttl_micros
returning epoch

-- name: set_leader
update stepwell.leader set worker = $1, epoch = $2, until = $3, ttl_micros = $4, backend_pid = $5
where one

-- name: clear_leader
-- Only the leader of that epoch gives it up; -1 is nobody's.
update stepwell.leader set worker = '', epoch = -1, until = 0, backend_pid = null
where one and epoch = $1
returning 1

-- name: next_epoch
-- The lower part is drawn by chance: where a database was restored, the count is given again, and
-- whoever led before must not pass for the leader.
select (nextval('stepwell.leader_epoch') << 24) | floor(random() * 16777216)::bigint

-- name: take_leader_lock
-- This server process, if it has or gets the lock, else null. Never waits. A lock that it has
-- already is not taken again, so that it is given back in one go.
select case
    when exists (
        select 1 from pg_locks
        where locktype = 'advisory' and pid = pg_backend_pid() and objsubid = 2
            and database = (select oid from pg_database where datname = current_database())
            and classid = hashtext('stepwell leader')::oid and objid = hashtext($1)::oid)
    then pg_backend_pid()
    when pg_try_advisory_lock(hashtext('stepwell leader'), hashtext($1)) then pg_backend_pid()
    end

-- name: leave_leader_lock
select pg_advisory_unlock(hashtext('stepwell leader'), hashtext($1))
