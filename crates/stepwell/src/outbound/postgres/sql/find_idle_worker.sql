-- find_idle_worker: a live worker in whose queues nothing waits, its queues, what it serves, and
--     the count in the token of what is handed over to it.
-- Safe: what workers serve is held still by a statement before, so it is not buried meanwhile.
-- Index: unique id of worker; primary key of ready; serve is small.
select no, queues, next_turn, array(
    select distinct definition from stepwell.serve where serve.worker = worker.no),
    nextval('stepwell.claim_count')
from stepwell.worker
where id = $1 and state = 0 and not exists (
    select from unnest(worker.queues) as served (queue)
    where exists (select from stepwell.ready where ready.queue = served.queue))
