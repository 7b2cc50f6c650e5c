-- read_standing: where a tenant stands in a queue.
-- Safe: read only.
-- Index: primary key of standing.
select last from standing where group_id = ?1 and queue = ?2
