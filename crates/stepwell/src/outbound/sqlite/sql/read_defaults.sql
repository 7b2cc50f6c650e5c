-- read_defaults: what holds for tenants without settings of their own.
-- Safe: read only.
-- Index: primary key of counter.
select default_weight, default_tasks_max from counter where one = 1
