-- name: lock_tenant_table
-- Keeps others from numbering tenants at the same time.
lock table stepwell.tenant in share row exclusive mode

-- name: count_tenants
-- Tenants are numbered without gaps. Read after the table was locked. Index: primary key.
select coalesce(max(tenant_no) + 1, 0)::bigint from stepwell.tenant

-- name: insert_tenants
insert into stepwell.tenant (tenant_no, name) select * from unnest($1::int[], $2::text[])
returning tenant_no, name, mark

-- name: read_tenants
-- Whoever acts on the settings locks the tenants afterwards.
select {tenant_settings}
from stepwell.tenant t cross join stepwell.tenant_default d
where t.tenant_no = any($1)
order by t.tenant_no

-- name: read_tenants_by_name
select {tenant_settings}
from stepwell.tenant t cross join stepwell.tenant_default d
where t.name = any($1)

-- name: share_tenants
-- Key share holds off a change of settings until the end of the transaction.
select {tenant_settings}
from stepwell.tenant t cross join stepwell.tenant_default d
where t.tenant_no = any($1)
order by t.tenant_no
for key share of t

-- name: lock_limited_tenants
-- Locked in order of their numbers, so that their admissions can be counted; no key update lets
-- new runs of the tenant be stored meanwhile.
select tenant_no from stepwell.tenant where tenant_no = any($1) order by tenant_no for no key update

-- name: lock_tenants
-- Waits for everybody who counts by the old settings; locked in order of their numbers.
select tenant_no from stepwell.tenant where tenant_no = any($1) order by tenant_no for update

-- name: tenants_to_settle
-- Index: primary key.
select tenant_no from stepwell.tenant where tenant_no >= $1 and not has_own
order by tenant_no limit $2

-- name: set_tenant
update stepwell.tenant set has_own = true, weight = $2, tasks_max = $3 where tenant_no = $1

-- name: read_default_tenant
select weight, tasks_max, settle_from from stepwell.tenant_default

-- name: lock_default_tenant
-- One at a time changes the default or applies it.
select weight, tasks_max, settle_from from stepwell.tenant_default for update

-- name: set_default_tenant
update stepwell.tenant_default set weight = $1, tasks_max = $2, settle_from = $3

-- name: set_settle_from
update stepwell.tenant_default set settle_from = $1

-- name: view_tenant
-- Index: those by tenant of ready, throttled and parked; all claims, which are few.
select {tenant_settings},
    (select count(*) from stepwell.ready where tenant_no = t.tenant_no),
    (select count(*) from stepwell.claim
     cross join lateral unnest(claim.runs, claim.nodes) as held (run, node)
     cross join lateral (
        select task.run from stepwell.task
        where task.run = held.run and task.node = held.node and task.token = claim.token
        offset 0) as task
     cross join lateral (
        select run.tenant_no from stepwell.run where run.key = task.run offset 0) as run
     where run.tenant_no = t.tenant_no),
    (select count(*) from stepwell.throttled where tenant_no = t.tenant_no),
    (select count(*) from stepwell.parked where tenant_no = t.tenant_no)
from stepwell.tenant t cross join stepwell.tenant_default d
where t.name = $1
