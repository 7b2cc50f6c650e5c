-- Who leads.
create table stepwell.leader (
    one boolean primary key default true check (one),
    worker text not null,
    epoch bigint not null,
    until bigint not null,
    ttl_micros bigint not null check (ttl_micros > 0),
    -- the server process that holds the leader's lock; null if it leads by its term alone
    backend_pid integer
);
-- Always there, so that candidates have something to lock; epoch -1 is nobody's.
insert into stepwell.leader (worker, epoch, until, ttl_micros) values ('', -1, 0, 1);
