-- read_serve: what a worker serves.
-- Safe: read only.
-- Index: serve is small.
select distinct definition from serve where worker = ?1
