-- raise_frontier: move a worker's frontier of a queue on; it never goes back.
-- Safe: the worker's own row.
-- Index: primary key of frontier.
insert into stepwell.frontier (queue, worker, position)
select * from unnest($1::text[], $2::bigint[], $3::bigint[])
on conflict (queue, worker) do update set position = greatest(frontier.position,
    excluded.position)
