-- holds_own_claim: whether a claim of this worker still holds its task.
-- Safe: read only.
-- Index: primary key of task.
select 1 from task where run = ?1 and node = ?2 and state = 2 and token = ?3 and worker = ?4
