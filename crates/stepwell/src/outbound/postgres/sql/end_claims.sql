-- end_claims: count ended claims down in their batches; one that has none left goes.
-- Safe: locked in order, after everything else; the count is the one found with the lock.
-- Index: primary key of claim.
with locked as materialized (
    select token, n_open from stepwell.claim where token = any($1) order by token for update
), ended as materialized (
    select locked.token, locked.n_open - ended.n as n_left
    from locked join unnest($1::uuid[], $2::int[]) as ended (token, n) on ended.token = locked.token
), gone as (
    delete from stepwell.claim using ended
    where claim.token = ended.token and ended.n_left <= 0
)
update stepwell.claim set n_open = ended.n_left
from ended where claim.token = ended.token and ended.n_left > 0
