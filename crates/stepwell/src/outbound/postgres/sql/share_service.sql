-- share_service: hold still what live workers serve; gives the database's time.
-- Safe: shared by all who put tasks into line; taken before any row lock.
-- Index: none.
select (extract(epoch from now()) * 1000000)::bigint,
    pg_advisory_xact_lock_shared(hashtextextended('stepwell service ' || $1, 0))
