-- hand_over: tasks that became ready are one worker's claims.
-- Safe: the tasks are written as claimed in the same transaction.
-- Index: primary key of claim.
insert into stepwell.claim (token, worker, runs, nodes, n_open)
values ($1, $2, $3::uuid[], $4::int[], cardinality($3::uuid[]))
