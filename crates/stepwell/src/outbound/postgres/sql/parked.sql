-- name: parked_places
-- The queues and services of which a task is parked, each found behind the one before, and whether
-- somebody serves them. Index: primary key of parked.
with recursive place (queue, service) as (
    (select parked.queue, parked.service from stepwell.parked
     order by parked.queue, parked.service limit 1)
    union all
    select next.queue, next.service
    from place cross join lateral (
        select parked.queue, parked.service from stepwell.parked
        where (parked.queue, parked.service) > (place.queue, place.service)
        order by parked.queue, parked.service limit 1) as next
)
select place.queue, place.service, exists (
    select 1 from stepwell.serve
    where serve.queue = place.queue and serve.service = place.service)
from place

-- name: tenants_parked_at
-- Of the oldest tasks of queues and services. Index: primary key of parked.
select distinct found.tenant_no
from unnest($1::text[], $2::int[]) as place (queue, service)
cross join lateral (
    select parked.tenant_no from stepwell.parked
    where parked.queue = place.queue and parked.service = place.service
    order by parked.number limit $3) as found

-- name: unpark
-- The oldest parked tasks of queues and services, of tenants that are locked. As withdraw_ready_at.
-- Index: primary key of parked.
delete from stepwell.parked where ctid = any(array(
    select found.at
    from unnest($1::text[], $2::int[]) as place (queue, service)
    cross join lateral (
        select p.ctid as at, p.number
        from stepwell.parked p join stepwell.task t on t.run = p.run and t.node = p.node
        where p.queue = place.queue and p.service = place.service and p.tenant_no = any($4)
        order by p.number limit $3
        for update of p, t skip locked) as found
    order by found.number limit $3))
returning {queued_names}

-- name: tenants_parked_of
-- As tenants_parked_at, of steps. Index: parked_node.
select distinct found.tenant_no
from unnest($1::text[], $2::int[], $4::bigint[]) as place (queue, service, node)
cross join lateral (
    select parked.tenant_no from stepwell.parked
    where parked.queue = place.queue and parked.service = place.service
        and parked.node::bigint = place.node
    order by parked.number limit $3) as found

-- name: unpark_of
-- As unpark, of steps. Index: parked_node.
delete from stepwell.parked where ctid = any(array(
    select found.at
    from unnest($1::text[], $2::int[], $5::bigint[]) as place (queue, service, node)
    cross join lateral (
        select p.ctid as at, p.number
        from stepwell.parked p join stepwell.task t on t.run = p.run and t.node = p.node
        where p.queue = place.queue and p.service = place.service
            and p.node::bigint = place.node
            and p.tenant_no = any($4)
        order by p.number limit $3
        for update of p, t skip locked) as found
    order by found.number limit $3))
returning {queued_names}
