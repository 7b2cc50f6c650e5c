-- set_defaults: what holds for tenants without settings of their own.
-- Safe: one writer at a time.
-- Index: primary key of counter.
update counter set default_weight = ?1, default_tasks_max = ?2 where one = 1
