-- find_attempts: how the attempts under these tokens ended.
-- Safe: read after the runs' locks: an earlier commit of the same claim is visible.
-- Index: primary key of attempt.
select attempt.run, attempt.node, attempt.token, attempt.state
from unnest($1::uuid[], $2::int[], $3::uuid[]) as asked (run, node, token)
join stepwell.attempt on attempt.run = asked.run and attempt.node = asked.node and attempt.token
    = asked.token
