-- unpark: parked tasks that somebody serves by now.
-- Safe: rows another session holds are left for the next round.
-- Index: primary key of parked, for each lot that is served.
with back as materialized (
    select p.run, p.node
    from (select distinct queue, definition from stepwell.serve) s
    cross join lateral (
        select parked.run, parked.node from stepwell.parked
        where parked.queue = s.queue and parked.definition = s.definition
        for update skip locked) p
)
delete from stepwell.parked using back
where parked.run = back.run and parked.node = back.node
returning number, queue, definition, losses, parked.run, parked.node, group_id
