-- look_at_line: all that has to be known to put tasks into line: settings of tenants, what is
--     served, where tenants stand, how far queues are, and spans of numbers of arrival.
-- Safe: what workers serve and the tenants are locked before, so it is as fresh as those locks;
--     standings are locked here, in order.
-- Index: primary keys of tenant, standing and frontier; serve is small.
with stood as materialized (
    select standing.group_id, standing.queue, standing.last
    from unnest($2::int[], $3::text[]) as asked (group_id, queue)
    join stepwell.standing
        on standing.group_id = asked.group_id and standing.queue = asked.queue
    order by standing.group_id, standing.queue
    for update of standing
)
select 0 as kind, t.group_id as number, null as name,
    case when t.has_own then t.weight else d.weight end::bigint as value,
    case when t.has_own then t.tasks_max else d.tasks_max end as tasks_max
from stepwell.tenant t cross join stepwell.tenant_default d
where t.group_id = any($1)
union all
select distinct 1, definition, queue, null::bigint, null::int from stepwell.serve where $5::int > 0
union all
select 2, group_id, queue, last, null from stood
union all
select 3, null, queue, max(position), null from stepwell.frontier
where queue = any($4) group by queue
union all
select 4, null, null, nextval('stepwell.arrival'), null from generate_series(1, $5::int)
