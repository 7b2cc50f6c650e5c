-- lock_claims: batches of claims of which some end.
-- Safe: locked in order, after everything else; a later statement counts them down.
-- Index: primary key of claim.
select token from stepwell.claim where token = any($1) order by token for update
