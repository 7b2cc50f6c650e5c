-- free_admitted: slots that came free.
-- Safe: the runs are locked.
-- Index: primary key of admitted.
delete from stepwell.admitted
using unnest($1::uuid[], $2::int[]) as gone (run, node)
where admitted.run = gone.run and admitted.node = gone.node
returning admitted.group_id
