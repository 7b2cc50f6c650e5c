-- look_at_queue: how far a queue is known to be passed and by which round, how far it was then and
--     who was joining it, how far it is now and who is joining it now.
-- Safe: locks are listed later than the snapshot is taken. Whoever joins takes its lock before it
--     reads how far the queue is, so whoever read less than this is listed, or has ended.
-- Index: primary keys of passed and frontier.
select p.round, p.order_key, p.frontier, p.joining,
    (select max(position) from stepwell.frontier where queue = $1),
    array(
        select virtualtransaction from pg_locks
        where locktype = 'advisory' and granted and objsubid = 1
            and database = (select oid from pg_database where datname = current_database())
            and (classid::bigint << 32) | objid::bigint
                = hashtextextended('stepwell service ' || $2, 0))
from (select) as once
left join lateral (
    select round, order_key, frontier, joining from stepwell.passed where queue = $1
    order by round desc limit 1) as p on true
