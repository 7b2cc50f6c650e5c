-- insert_serve: what a worker serves.
-- Safe: the worker's own rows.
-- Index: primary key of serve.
insert into stepwell.serve (worker, queue, definition)
select $1, queue, definition from unnest($2::text[]) queue, unnest($3::int[]) definition
on conflict do nothing
