-- take_unserved: ready tasks that no live worker serves.
-- Safe: rows a claim holds are left alone.
-- Index: primary key of ready, primary key of serve.
delete from stepwell.ready where (run, node) in (
    select r.run, r.node from stepwell.ready r
    where not exists (select 1 from stepwell.serve s where s.queue = r.queue and s.definition =
    r.definition)
    for update skip locked)
returning number, queue, definition, losses, run, node, group_id
