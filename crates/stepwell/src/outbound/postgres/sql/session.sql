-- name: read_now
select {now}

-- name: read_clock
-- The time at this moment; the transaction may have begun long before and waited for a lock.
select {clock}

-- name: read_setting
select current_setting($1)
