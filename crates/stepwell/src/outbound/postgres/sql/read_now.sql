-- read_now: the database's time, in microseconds.
-- Safe: read only.
-- Index: none.
select (extract(epoch from now()) * 1000000)::bigint
