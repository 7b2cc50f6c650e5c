-- raise_frontier: move the frontier of a queue on; it never goes back.
-- Safe: one writer at a time.
-- Index: primary key of frontier.
insert into frontier (queue, position) values (?1, ?2)
on conflict (queue) do update set position = max(position, excluded.position)
