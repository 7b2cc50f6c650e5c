-- Timers of tasks.

-- name: set_timer
-- A task has one timer: one that is set anew takes the place of the last.
insert or replace into timer ({timer_names}) values ({timer_values})

-- name: delete_timer
delete from timer where run = ?1 and node = ?2

-- name: delete_due_timer
-- Not one that was set anew.
delete from timer where run = ?1 and node = ?2 and due_at <= ?3

-- name: due_timers
select run.key, node from timer join run on run.no = timer.run
where due_at <= ?1 order by due_at, number limit ?2

-- name: put_off_first_timer
update timer set due_at = ?1
where (due_at, number) = (select due_at, number from timer order by due_at, number limit 1)

-- name: next_timer
select due_at from timer order by due_at, number limit 1

-- name: dump_timers
select run.key, node, due_at from timer join run on run.no = timer.run
