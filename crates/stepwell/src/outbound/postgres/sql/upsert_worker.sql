-- upsert_worker: register a worker, or register it anew.
-- Safe: unique id.
-- Index: unique id of worker.
insert into stepwell.worker (id, queues, lease_micros, seen_at, state) values ($1, $2, $3, $4, 0)
on conflict (id) do update set queues = excluded.queues, lease_micros = excluded.lease_micros,
    seen_at = excluded.seen_at, state = 0, next_turn = 0
returning no
