-- upsert_worker: register a worker, or register it anew.
-- Safe: one writer; unique id.
-- Index: unique id of worker.
insert into worker (id, lease_micros, seen_at, state, seat) values (?1, ?2, ?3, 0, ?4)
on conflict (id) do update set lease_micros = excluded.lease_micros, seen_at = excluded.seen_at,
    state = 0, next_turn = 0, seat = excluded.seat
returning no
