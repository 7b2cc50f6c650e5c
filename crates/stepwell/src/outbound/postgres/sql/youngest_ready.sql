-- youngest_ready: the youngest ready tasks of a tenant.
-- Safe: the tenant is locked; rows a claim holds are left alone.
-- Index: ready_position.
select run, node from stepwell.ready where group_id = $1
order by number desc limit $2 for update skip locked
