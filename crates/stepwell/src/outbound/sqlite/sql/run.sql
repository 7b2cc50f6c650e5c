-- Runs. What reads one gives its columns and then the name of its tenant.

-- name: insert_run
insert into run ({run_names}, input_codec, input) values ({run_values}, ?, ?)
on conflict do nothing

-- name: insert_fresh_run
-- Nearly all runs begin like this, so what is the same in all of them is no parameter.
insert into run (key, tenant_no, id, definition, started_at, deadline, input_digest, status, n_open,
    n_failed, n_cancelled, cancelled, n_signals, n_unconsumed, next_event, input_codec, input)
values (?, ?, ?, ?, ?, ?, ?, {run.RUNNING}, ?, 0, 0, 0, 0, 0, ?, ?, ?)
on conflict do nothing

-- name: advance_run
-- A run that goes on changes in these two columns only, mostly.
update run set n_open = ?2, next_event = ?3 where no = ?1

-- name: end_run
-- A run of which nothing failed ends by these.
update run set status = ?2, n_open = ?3, next_event = ?4, end_event = ?5, ended_at = ?6
where no = ?1

-- name: update_run
update run set {run_updates} where no = ?1

-- name: read_run
select {run}, tenant.name from run join tenant using (tenant_no) where key = ?1

-- name: find_run
select {run}, tenant.name from tenant join run using (tenant_no)
where tenant.name = ?1 and run.id = ?2

-- name: look_until
-- The last of so many runs before a key, if there are so many.
select key from run where key < ?1 order by key desc limit 1 offset ?2

-- name: list_runs
select {run}, tenant.name
from run join tenant using (tenant_no) join definition on definition.id = run.definition
where key < ?1 and key >= ?6
    and (?2 is null or tenant.name = ?2)
    and (?3 is null or definition.workflow = ?3)
    and (?4 is null or status = ?4)
order by key desc
limit ?5

-- name: read_ended
select status, failure from run where key = ?1 and status >= {run.COMPLETED}

-- name: read_given
select {given_names} from run where key = ?1

-- name: dump_runs
select {run}, tenant.name from run join tenant using (tenant_no) order by key
