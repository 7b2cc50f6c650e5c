-- insert_tasks: tasks of fresh runs; those that run were handed over to one worker.
-- Safe: the runs are ours until the commit; unique (run, node).
-- Index: primary key of task.
insert into stepwell.task (run, node, state, n_unmet, n_skipped, attempt, failures, losses,
    queued_logged, queued_at, due_at, worker, token, started_at)
select fresh.*, case when fresh.state = 2 then $12::bigint end,
    case when fresh.state = 2 then $13::uuid end, case when fresh.state = 2 then $14::bigint end
from unnest($1::uuid[], $2::int[], $3::smallint[], $4::int[], $5::int[], $6::int[], $7::int[],
    $8::int[], $9::bool[], $10::bigint[], $11::bigint[])
    as fresh (run, node, state, n_unmet, n_skipped, attempt, failures, losses, queued_logged,
    queued_at, due_at)
