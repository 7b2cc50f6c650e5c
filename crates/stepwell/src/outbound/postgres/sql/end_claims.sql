-- end_claims: count ended claims down in their batches; one that has none left goes.
-- Safe: the rows are locked by a statement before.
-- Index: primary key of claim.
with ended as materialized (
    select token, n from unnest($1::uuid[], $2::int[]) as ended (token, n)
), gone as (
    delete from stepwell.claim using ended
    where claim.token = ended.token and claim.n_open <= ended.n
)
update stepwell.claim set n_open = claim.n_open - ended.n
from ended where claim.token = ended.token and claim.n_open > ended.n
