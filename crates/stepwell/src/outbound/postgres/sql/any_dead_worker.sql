-- any_dead_worker: whether this epoch is the current one, and whether there may be workers to reap.
-- Safe: a hint: both are checked again under locks.
-- Index: primary key of leader, worker_alive.
select exists (select 1 from stepwell.leader where one and epoch = $1),
    exists (select 1 from stepwell.worker
        where state < 2 and (state = 1 or $2 and seen_at + lease_micros
            < coalesce($3, (extract(epoch from now()) * 1000000)::bigint)))
