-- find_attempt: how the attempt under a token ended.
-- Safe: read only.
-- Index: primary key of attempt.
select state from attempt where run = ?1 and node = ?2 and token = ?3
