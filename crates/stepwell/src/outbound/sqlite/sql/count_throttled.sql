-- count_throttled: how many tasks of a tenant are held back.
-- Safe: read only.
-- Index: primary key of throttled.
select count(*) from throttled where group_id = ?1
