-- definition_revisions: whether policies have changed since the last look.
-- Safe: read only.
-- Index: whole table: it is small.
select count(*) + coalesce(sum(revision), 0)::bigint from stepwell.definition
