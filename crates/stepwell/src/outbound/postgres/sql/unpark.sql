-- unpark: parked tasks that somebody serves by now.
-- Safe: rows another session holds are left for the next round; none is ever updated, so they are
--     where they were found.
-- Index: primary key of parked, for each lot that is served.
delete from stepwell.parked where ctid = any(array(
    select p.at
    from (select distinct queue, definition from stepwell.serve) s
    cross join lateral (
        select parked.ctid as at from stepwell.parked
        where parked.queue = s.queue and parked.definition = s.definition
        for update skip locked) p))
returning number, queue, definition, losses, run, node, group_id
