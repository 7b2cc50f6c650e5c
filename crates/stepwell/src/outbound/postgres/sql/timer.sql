-- name: insert_timers
insert into stepwell.timer ({timer_names}) select * from unnest({timer_arrays})

-- name: delete_timers
-- The runs are locked, and rows are updated under that lock only: they are where they were found.
delete from stepwell.timer where ctid = any(array(
    select found.at from unnest($1::uuid[], $2::int[]) as gone (run, node)
    cross join lateral (
        select timer.ctid as at from stepwell.timer
        where timer.run = gone.run and timer.node = gone.node
        offset 0) as found))

-- name: delete_stale_timers
-- Timers that were found due and that nothing waits for. One that was set anew meanwhile stays.
delete from stepwell.timer where ctid = any(array(
    select found.at from unnest($1::uuid[], $2::int[]) as gone (run, node)
    cross join lateral (
        select timer.ctid as at from stepwell.timer
        where timer.run = gone.run and timer.node = gone.node and timer.due_at <= $3
        offset 0) as found))

-- name: due_timers
-- A hint: each timer is checked again under its run's lock. Index: timer_due.
select {timer} from stepwell.timer where due_at <= $1 order by due_at, number limit $2

-- name: lock_run_of_timer
-- Nothing of the run is read: it may be what keeps the timer from being fired.
select 1 from stepwell.run where key = $1 for update

-- name: put_off_timer
-- The run is locked. A timer that was set anew meanwhile stays.
update stepwell.timer set due_at = $3 where run = $1 and node = $2 and due_at <= $4

-- name: next_timer
select due_at from stepwell.timer order by due_at, number limit 1

-- name: any_due_timer
-- Whether this epoch is the current one, and the microseconds until the next timer is due. A hint:
-- whoever fires timers checks both again.
select exists (select 1 from stepwell.leader where one and epoch = $1),
    (select due_at from stepwell.timer order by due_at, number limit 1) - coalesce($2, {now})

-- name: read_timers
select {timer} from stepwell.timer
