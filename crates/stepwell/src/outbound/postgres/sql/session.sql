-- name: read_now
select {now}

-- name: read_setting
select current_setting($1)
