-- How far services in queues were passed: no task stands before the newest row's key, and none ever
-- will.
create table stepwell.watermark (
    queue text collate "C" not null,
    service integer not null,
    round bigint not null check (round > 0),
    order_key bigint not null check (order_key >= 0),
    -- How far the queue was when the row was written, and the transactions that were enqueuing:
    -- when they have ended, whatever is enqueued stands at this position or behind.
    frontier bigint not null check (frontier >= 0),
    enqueuing text[] not null,
    primary key (queue, service, round)
);
