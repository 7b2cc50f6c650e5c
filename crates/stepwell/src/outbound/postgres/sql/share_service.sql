-- share_service: hold still what live workers serve.
-- Safe: shared by all who put tasks into line; taken before any row lock.
-- Index: none.
select pg_advisory_xact_lock_shared(hashtextextended('stepwell service ' || $1, 0))
