-- leave_leader_lock: give the leader's lock back.
-- Safe: only the server process that has it can.
-- Index: none.
select pg_advisory_unlock(hashtext('stepwell leader'), hashtext($1))
