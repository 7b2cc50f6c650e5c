-- hand_over: tasks that became ready are one worker's claims, and its frontiers of queues move on.
-- Safe: the tasks are written as claimed in the same transaction; the frontiers are the worker's
--     own rows, and never go back.
-- Index: primary keys of claim and frontier.
with held as (
    insert into stepwell.claim (token, worker, runs, nodes, n_open)
    values ($1, $2, $3::uuid[], $4::int[], cardinality($3::uuid[]))
)
insert into stepwell.frontier (queue, worker, position)
select queue, $2, position from unnest($5::text[], $6::bigint[]) as f (queue, position)
on conflict (queue, worker) do update
set position = greatest(frontier.position, excluded.position)
