-- find_worker: a live worker, its queues, what it serves, the database's time, and
--     the count in the next claim's token.
-- Safe: key share keeps the reaper from burying it before the claim commits.
-- Index: unique id of worker.
select no, queues, next_turn, array(
    select distinct definition from stepwell.serve where serve.worker = worker.no),
    (extract(epoch from now()) * 1000000)::bigint, nextval('stepwell.claim_count')
from stepwell.worker where id = $1 and state = 0
for key share
