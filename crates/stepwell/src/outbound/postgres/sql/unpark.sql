-- unpark: parked tasks that somebody serves by now.
-- Safe: rows another session holds are left for the next round.
-- Index: primary key of parked, primary key of serve.
delete from stepwell.parked where (queue, definition, number) in (
    select p.queue, p.definition, p.number from stepwell.parked p
    where exists (select 1 from stepwell.serve s where s.queue = p.queue and s.definition =
    p.definition)
    for update skip locked)
returning number, queue, definition, losses, run, node, group_id
