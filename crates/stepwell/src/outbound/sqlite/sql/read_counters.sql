-- read_counters: counters, the latest time and the default settings.
-- Safe: read inside the transaction that uses them.
-- Index: primary key of counter.
select last_number, n_claims, last_epoch, now, n_told, default_weight, default_tasks_max
from counter where one = 1
