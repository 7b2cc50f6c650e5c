-- take_leader_lock: this server process, if it has or gets the leader's lock, else null.
-- Safe: never waits; a lock it has already is not taken again, so it is given back in one go.
-- Index: none.
select case
    when exists (
        select 1 from pg_locks
        where locktype = 'advisory' and pid = pg_backend_pid() and objsubid = 2
            and database = (select oid from pg_database where datname = current_database())
            and classid = hashtext('stepwell leader')::oid and objid = hashtext($1)::oid)
    then pg_backend_pid()
    when pg_try_advisory_lock(hashtext('stepwell leader'), hashtext($1)) then pg_backend_pid()
    end
