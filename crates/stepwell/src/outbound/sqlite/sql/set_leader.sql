-- set_leader: take or keep leadership.
-- Safe: one writer; the epoch only grows.
-- Index: primary key of leader.
insert into leader (one, worker, epoch, until) values (1, ?1, ?2, ?3)
on conflict (one) do update set worker = excluded.worker, epoch = excluded.epoch,
    until = excluded.until
