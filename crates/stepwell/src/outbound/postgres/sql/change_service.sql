-- change_service: change what live workers serve.
-- Safe: waits for all who put tasks into line; taken before any row lock.
-- Index: none.
select pg_advisory_xact_lock(hashtextextended('stepwell service ' || $1, 0))
