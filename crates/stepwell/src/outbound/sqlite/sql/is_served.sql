-- is_served: whether a live worker serves a queue and definition.
-- Safe: read only.
-- Index: primary key of serve.
select 1 from serve where queue = ?1 and definition = ?2 limit 1
