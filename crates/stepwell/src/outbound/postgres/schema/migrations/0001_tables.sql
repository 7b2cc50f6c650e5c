-- Every table of the store, in its own schema. Runs in one transaction under the migration lock,
-- so a crash leaves no table behind.

-- What runs are decided on, one row for each structure of a workflow. Room for new versions of hot
-- rows on their own page keeps updates off the indexes.
create table stepwell.definition (
    id integer primary key,
    workflow text collate "C" not null,
    version integer not null check (version >= 0),
    signature bytea not null check (length(signature) = 32),
    body text not null,
    -- drawn by chance: tells it from another that got its number in a database that was restored
    mark bigint not null default (
        ('x' || left(replace(gen_random_uuid()::text, '-', ''), 16))::bit(64)::bigint),
    unique (workflow, version),
    unique (workflow, signature)
);

-- What definitions there are and which policies they have, told by one number, which is drawn by
-- chance whenever any of that changes; one row. Whoever remembers definitions compares it.
create table stepwell.catalog (
    one boolean primary key default true check (one),
    revision bigint not null default (
        ('x' || left(replace(gen_random_uuid()::text, '-', ''), 16))::bit(64)::bigint)
);
insert into stepwell.catalog default values;

-- The names of steps, by the numbers that tasks have.
create table stepwell.step (
    definition integer not null references stepwell.definition (id),
    node integer not null check (node >= 0),
    name text collate "C" not null,
    primary key (definition, node)
);

-- What holds for tenants without settings of their own; one row.
create table stepwell.tenant_default (
    one boolean primary key default true check (one),
    weight integer not null default 1 check (weight between 1 and 1000),
    tasks_max integer check (tasks_max > 0),
    -- the first tenant to which the limit is still to be applied; null if it holds for all
    settle_from integer check (settle_from >= 0)
);
insert into stepwell.tenant_default default values;

create table stepwell.tenant (
    tenant_no integer primary key check (tenant_no >= 0 and tenant_no < 1048576),
    name text collate "C" not null unique,
    -- drawn by chance: tells it from another that got its number in a database that was restored
    mark bigint not null default (
        ('x' || left(replace(gen_random_uuid()::text, '-', ''), 16))::bit(64)::bigint),
    has_own boolean not null default false,
    weight integer not null default 1 check (weight between 1 and 1000),
    tasks_max integer check (tasks_max > 0)
);

-- The upper part of the numbers of workers, which grow in the order of registration.
create sequence stepwell.worker_count;

create table stepwell.worker (
    -- The lower part is drawn by chance, so that no number is given twice, not even in a database
    -- that was restored.
    no bigint primary key default (
        (nextval('stepwell.worker_count') << 36)
        | ('x' || left(replace(gen_random_uuid()::text, '-', ''), 9))::bit(36)::bigint),
    id text collate "C" not null unique,
    queues text[] not null,
    lease_micros bigint not null check (lease_micros > 0),
    seen_at bigint not null,
    -- registrations and heartbeats so far
    n_beats bigint not null default 1 check (n_beats > 0),
    -- which of its queues the next claim begins with
    next_turn integer not null default 0 check (next_turn >= 0),
    state smallint not null check (state between 0 and 15),
    -- whether it takes suspects, each with empty hands, and nothing else
    in_trial boolean not null default false,
    -- whether it was found dead, while its tasks are taken from it
    was_lost boolean not null default false
) with (fillfactor = 50);
create index worker_alive on stepwell.worker (no) where state < 2;

-- What live workers serve. A service is code that tasks need: that of a workflow version, under
-- the number of its definition.
create table stepwell.serve (
    queue text collate "C" not null,
    service integer not null,
    worker bigint not null references stepwell.worker (no),
    primary key (queue, service, worker)
);
create index serve_worker on stepwell.serve (worker);

-- Hot tables have no foreign keys: checking one costs more than writing the row. Every writer
-- holds the run, and rows of a run are only ever inserted by the transaction that inserted it or
-- that has locked it.
create table stepwell.run (
    key uuid primary key,
    tenant_no integer not null,
    id text collate "C" not null,
    definition integer not null,
    status smallint not null,
    n_open integer not null,
    n_failed integer not null,
    n_cancelled integer not null,
    cancelled boolean not null,
    -- signals that were sent to it, and those of them that nobody got yet
    n_signals bigint not null default 0,
    n_unconsumed integer not null default 0,
    failure text,
    next_event bigint not null,
    end_event bigint,
    started_at bigint not null,
    deadline bigint,
    ended_at bigint,
    input_digest bytea not null,
    check (status between 0 and 15),
    check (least(n_open, n_failed, n_cancelled, n_unconsumed, n_signals - n_unconsumed,
        next_event - 2) >= 0),
    check (length(input_digest) = 32),
    check (num_nonnulls(ended_at, end_event) = case when status < 2 then 0 else 2 end),
    check (end_event < next_event),
    check (status < 2 or n_open = 0),
    unique (tenant_no, id)
) with (fillfactor = 50);

create table stepwell.input (
    run uuid primary key,
    codec text not null,
    bytes bytea not null
);

create table stepwell.task (
    run uuid not null,
    node integer not null,
    state smallint not null,
    n_unmet integer not null,
    n_skipped integer not null,
    attempt integer not null,
    failures integer not null,
    losses integer not null,
    queued_logged boolean not null,
    queued_at bigint,
    due_at bigint,
    started_at bigint,
    worker bigint,
    token uuid,
    -- what ended its last wait: the number of a signal, 0 if time ran out
    resumed_by bigint,
    -- the number of the next memo of its function, 0 if that was never suspended
    next_memo bigint not null default 0,
    primary key (run, node),
    -- Few and short: the server reads their text anew for every statement.
    check (state between 0 and 15),
    check (least(node, n_unmet, n_skipped, attempt, failures, losses, resumed_by, next_memo) >= 0),
    check (num_nonnulls(token, worker, started_at) = case state when 2 then 3 else 0 end),
    check ((state in (1, 2)) = (queued_at is not null)),
    check (case when due_at is null then state <> 3 else state in (1, 3, 4) end),
    check (n_unmet = 0 or state in (0, 7, 8))
) with (fillfactor = 50);

-- What workers hold: one row for each batch of claims, so that a task's own row changes without
-- touching an index. It goes with the last of its claims.
create table stepwell.claim (
    token uuid primary key,
    worker bigint not null,
    runs uuid[] not null,
    nodes integer[] not null,
    n_open integer not null check (n_open > 0),
    check (cardinality(runs) = cardinality(nodes))
) with (fillfactor = 50);
create index claim_worker on stepwell.claim (worker);

create table stepwell.output (
    run uuid not null,
    node integer not null,
    codec text not null,
    bytes bytea not null,
    primary key (run, node)
);

create table stepwell.attempt (
    run uuid not null,
    node integer not null,
    attempt integer not null check (attempt > 0),
    state smallint not null check (state between 0 and 15),
    worker bigint not null,
    token uuid not null,
    queued_at bigint not null,
    started_at bigint not null,
    ended_at bigint not null,
    first_event bigint not null check (first_event > 1),
    with_queued boolean not null,
    failure text,
    retry text,
    notes text,
    primary key (run, node, attempt)
);

create table stepwell.event (
    run uuid not null,
    number bigint not null check (number > 1),
    at bigint not null,
    node integer check (node >= 0),
    attempt integer not null check (attempt >= 0),
    kind text not null,
    primary key (run, number)
);

-- What tasks wait for that are WAITING, and what functions wait for, whatever their state. A row is
-- never updated: it goes when its wait is over. It names tenant and definition, so that the waiting
-- runs of a workflow are found in the order of their keys, whatever others wait for.
create table stepwell.wait (
    run uuid not null,
    node integer not null check (node >= 0),
    -- the memo of a function that its end is recorded under, or nothing
    key text collate "C" not null,
    -- that of the event that opened it, or that came next
    number bigint not null check (number > 1),
    -- its place among those of a function that opened together
    place integer not null check (place >= 0),
    -- 0 for a signal, 1 for a sleep, 2 for a step that is tried again
    kind smallint not null check (kind between 0 and 15),
    tenant_no integer not null,
    definition integer not null,
    signals text[] not null,
    matching text not null,
    n_signals_before bigint not null check (n_signals_before >= 0),
    opened_at bigint not null,
    deadline bigint,
    check ((cardinality(signals) > 0) = (kind = 0)),
    primary key (run, node, key)
);
-- By the key's text, which sorts like the key: on a table that is empty now and then, a plan could
-- else take this index to find the waits of a run, and read all of it.
create index wait_tenant on stepwell.wait (tenant_no, definition, (run::text) collate "C");

-- What running tasks told in their attempts. Only what was told under the token that a task has now
-- counts; rows of attempts that have ended go when their worker tells something next, or goes.
create table stepwell.progress (
    run uuid not null,
    node integer not null check (node >= 0),
    token uuid not null,
    worker bigint not null,
    told_at bigint not null,
    text text not null,
    primary key (run, node)
);
create index progress_worker on stepwell.progress (worker);

-- What was sent to runs. It stays as long as its run, whoever got it.
create table stepwell.signal (
    run uuid not null,
    number bigint not null check (number > 0),
    name text collate "C" not null,
    key text collate "C" not null,
    attributes text not null,
    digest bytea not null check (length(digest) = 32),
    sent_at bigint not null,
    consumed_by integer check (consumed_by >= 0),
    codec text not null,
    bytes bytea not null,
    primary key (run, number),
    unique (run, key)
);
create index signal_unconsumed on stepwell.signal (run, number) where consumed_by is null;

-- What functions have done or begun. Stored under the claim of the function's task, whose row is
-- locked meanwhile; neither the run nor the task is changed.
create table stepwell.memo (
    run uuid not null,
    node integer not null check (node >= 0),
    key text collate "C" not null,
    -- its place in the order in which its function hears of it; 0 if it is not to be heard of yet
    number bigint not null check (number >= 0),
    state smallint not null check (state between 0 and 15),
    tries integer not null check (tries >= 0),
    began_at bigint not null,
    at bigint not null,
    -- when what was begun ends or is tried again
    due_at bigint,
    -- the signal that ended a wait, or the number of a round
    refers_to bigint check (refers_to >= 0),
    failure text,
    -- the claim under which it was stored, unless a decision stored it
    token uuid,
    -- a value, or the input of a round
    codec text,
    bytes bytea,
    primary key (run, node, key),
    check ((bytes is null) = (codec is null))
);

-- The order of arrival of everything that waits.
create sequence stepwell.arrival;
-- The upper half of claim tokens.
create sequence stepwell.claim_count;
-- Terms of leadership.
create sequence stepwell.leader_epoch;

-- Tasks that can be claimed now, and only those. Wherever a queued task waits, its row has the
-- deadline of its run, null for most: a claim passes over tasks of runs that are only to be ended,
-- and tells them by the row that it reads anyway. By the row of the run it would be one more look
-- into an index for every task in line. The deadline of a run never changes, so the copy is right;
-- the failure handler of a run, which comes after the deadline, has none.
create table stepwell.ready (
    queue text collate "C" not null,
    order_key bigint not null check (order_key >= 0),
    number bigint not null,
    position bigint not null check (position >= 0),
    tenant_no integer not null,
    service integer not null,
    losses integer not null check (losses >= 0),
    deadline bigint,
    run uuid not null,
    node integer not null,
    -- by service first: what others serve is not stepped over
    primary key (queue, service, order_key, number)
) with (autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 20000);
create unique index ready_task on stepwell.ready (run, node);
create index ready_suspect on stepwell.ready (queue, service, order_key, number) where losses > 0;
create index ready_position on stepwell.ready (tenant_no, queue, position);

-- Tasks of limited tenants that are ready or running: the limit counts these rows.
create table stepwell.admitted (
    tenant_no integer not null,
    number bigint not null,
    run uuid not null,
    node integer not null,
    primary key (run, node)
);
create index admitted_tenant on stepwell.admitted (tenant_no, number);

-- Tasks behind their tenant's limit.
create table stepwell.throttled (
    tenant_no integer not null,
    number bigint not null,
    queue text collate "C" not null,
    service integer not null,
    losses integer not null check (losses >= 0),
    deadline bigint,
    run uuid not null,
    node integer not null,
    primary key (tenant_no, number)
);
create unique index throttled_task on stepwell.throttled (run, node);

-- Tasks that no live worker serves.
create table stepwell.parked (
    queue text collate "C" not null,
    service integer not null,
    number bigint not null,
    tenant_no integer not null,
    losses integer not null check (losses >= 0),
    deadline bigint,
    run uuid not null,
    node integer not null,
    primary key (queue, service, number)
);
create unique index parked_task on stepwell.parked (run, node);
create index parked_tenant on stepwell.parked (tenant_no);
-- By step, for those that got another queue. As a bigint, or plans would take it to find a task.
create index parked_node on stepwell.parked (queue, service, (node::bigint), number);

create table stepwell.timer (
    due_at bigint not null,
    number bigint not null default nextval('stepwell.arrival'),
    run uuid not null,
    node integer not null,
    primary key (run, node)
);
create index timer_due on stepwell.timer (due_at, number);

-- Where a tenant stands in a queue.
create table stepwell.tenant_position (
    tenant_no integer not null,
    queue text collate "C" not null,
    -- -1 until it has a place
    last bigint not null check (last >= -1),
    primary key (tenant_no, queue)
) with (fillfactor = 50);

-- The greatest position each worker has dequeued: its own row, so that claims do not queue up.
-- Those that are gone share one, under the number 0.
create table stepwell.frontier (
    queue text collate "C" not null,
    worker bigint not null,
    position bigint not null check (position >= 0),
    primary key (queue, worker)
) with (fillfactor = 50);
