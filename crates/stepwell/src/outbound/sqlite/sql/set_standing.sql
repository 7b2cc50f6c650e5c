-- set_standing: where a tenant stands in a queue from now on.
-- Safe: one writer at a time.
-- Index: primary key of standing.
insert into standing (group_id, queue, last) values (?1, ?2, ?3)
on conflict (group_id, queue) do update set last = excluded.last
