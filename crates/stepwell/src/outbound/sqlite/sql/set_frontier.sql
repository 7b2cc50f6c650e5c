-- set_frontier: the greatest position dequeued from a queue.
-- Safe: one writer at a time, which never lets it go back.
-- Index: primary key of frontier.
insert into frontier (queue, position) values (?1, ?2)
on conflict (queue) do update set position = excluded.position
