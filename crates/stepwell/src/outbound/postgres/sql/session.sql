-- name: read_now
select {now}

-- name: read_identity
-- With the time, what tells whether this is the database that is remembered: the revision of its
-- definitions, and the mark of the last tenant that is known of it.
select {now}, (select revision from stepwell.catalog),
    (select mark from stepwell.tenant where tenant_no = $1)

-- name: read_setting
select current_setting($1)
