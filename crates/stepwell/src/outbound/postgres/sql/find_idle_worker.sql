-- find_idle_worker: a live worker in whose queues nothing waits, its queues, what it serves, and
--     the count in the token of what is handed over to it.
-- Safe: what workers serve is held still by a statement before, so it is not buried meanwhile; of
--     what a queue is said to have passed nothing is left.
-- Index: unique id of worker; primary keys of passed and ready; serve is small.
select no, queues, next_turn, array(
    select distinct definition from stepwell.serve where serve.worker = worker.no),
    nextval('stepwell.claim_count')
from stepwell.worker
where id = $1 and state = 0 and not exists (
    select from unnest(worker.queues) as served (queue)
    left join lateral (
        select order_key from stepwell.passed where passed.queue = served.queue
        order by round desc limit 1) as p on true
    -- By the first of each queue: whatever the planner thinks of their size, it takes the index.
    where (
        select ready.order_key from stepwell.ready
        where ready.queue = served.queue and ready.order_key >= coalesce(p.order_key, 0)
        order by ready.order_key limit 1) is not null)
