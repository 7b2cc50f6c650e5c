-- holds_claim: whether a claim still holds its task.
-- Safe: read only.
-- Index: primary key of task.
select 1 from task where run = ?1 and node = ?2 and state = 2 and token = ?3
