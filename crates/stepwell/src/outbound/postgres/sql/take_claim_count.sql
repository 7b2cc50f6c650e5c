-- take_claim_count: the count in the next claim's token.
-- Safe: a sequence: never given twice.
-- Index: none.
select nextval('stepwell.claim_count')
