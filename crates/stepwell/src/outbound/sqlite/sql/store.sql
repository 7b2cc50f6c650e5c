-- The file as a whole: its version and its one row of counters.

-- name: data_version
pragma data_version

-- name: read_counters
select {counter} from counter where one = 1

-- name: set_counters
-- The writer knows that nobody else wrote since it read them.
update counter set {counter_updates} where one = 1

-- name: set_defaults
update counter set default_weight = ?1, default_tasks_max = ?2, settle_from = ?3 where one = 1

-- name: draw_revision
update counter set revision = random() where one = 1 returning revision

-- name: read_revision
select revision from counter where one = 1

-- name: read_n_wakes
select n_wakes from counter where one = 1
