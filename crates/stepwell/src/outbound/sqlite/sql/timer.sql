-- Timers of tasks.

-- name: insert_timer
insert into timer ({timer_names}) values ({timer_values})

-- name: delete_timer
delete from timer where run = ?1 and node = ?2

-- name: due_timers
select run.key, node from timer join run on run.no = timer.run
where due_at <= ?1 order by due_at, number limit ?2

-- name: next_timer
select due_at from timer order by due_at, number limit 1

-- name: dump_timers
select run.key, node, due_at from timer join run on run.no = timer.run
