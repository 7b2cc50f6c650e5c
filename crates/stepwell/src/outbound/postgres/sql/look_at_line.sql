-- look_at_line: all that has to be known to put tasks into line: what is served, where tenants
--     stand, how far queues are, and spans of numbers of arrival.
-- Safe: what workers serve and the tenants are locked before, so it is as fresh as those locks;
--     standings are locked here, in order.
-- Index: primary keys of standing and frontier; serve is small.
with stood as materialized (
    select standing.group_id, standing.queue, standing.last
    from unnest($1::int[], $2::text[]) as asked (group_id, queue)
    join stepwell.standing
        on standing.group_id = asked.group_id and standing.queue = asked.queue
    order by standing.group_id, standing.queue
    for update of standing
)
select distinct 1 as kind, definition as number, queue as name, null::bigint as value
from stepwell.serve
union all
select 2, group_id, queue, last from stood
union all
select 3, null, queue, max(position) from stepwell.frontier
where queue = any($2) group by queue
union all
select 4, null, null, nextval('stepwell.arrival') from generate_series(1, $3::int)
