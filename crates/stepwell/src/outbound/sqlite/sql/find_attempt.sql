-- find_attempt: how the attempt under a token ended.
-- Safe: read only.
-- Index: primary keys of attempt and task, key of run.
select state from attempt
where run = (select no from run where key = ?1) and node = ?2 and token = ?3
union all
select 0 from task
where run = (select no from run where key = ?1) and node = ?2 and token = ?3
    and ended_at is not null
