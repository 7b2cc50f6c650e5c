-- Every table of the store. Runs inside one exclusive transaction, so a crash leaves no table
-- behind. Tables without a rowid are clustered by their key.

create table stepwell_migration (
    version integer primary key,
    applied_at integer not null
) strict;

-- One row: counters, the latest time written down, and what holds for tenants without settings.
create table counter (
    one integer primary key check (one = 1),
    last_number integer not null default 0 check (last_number >= 0),
    n_claims integer not null default 0 check (n_claims >= 0),
    last_epoch integer not null default 0 check (last_epoch >= 0),
    now integer not null default 0,
    -- the time of day when that was written, by the machine's clock
    clock_at integer not null default 0,
    -- how often a commit had a reason to wake other processes
    n_wakes integer not null default 0 check (n_wakes >= 0),
    default_weight integer not null default 1 check (default_weight between 1 and 1000),
    default_tasks_max integer check (default_tasks_max > 0),
    -- the first tenant to which that limit is still to be applied; null if it holds for all
    settle_from integer check (settle_from >= 0),
    -- drawn by chance whenever definitions or policies change
    revision integer not null default (random())
) strict;
insert into counter (one) values (1);

-- What runs are decided on, one row for each structure of a workflow.
create table definition (
    id integer primary key,
    workflow text not null,
    version integer not null check (version >= 0),
    signature blob not null check (length(signature) = 32),
    body text not null,
    -- drawn by chance: tells it from another that got its number in a file that was restored
    mark integer not null default (random()),
    unique (workflow, version),
    unique (workflow, signature)
) strict;

-- The names of steps, by the numbers that tasks have.
create table step (
    definition integer not null references definition (id),
    node integer not null check (node >= 0),
    name text not null,
    primary key (definition, node)
) strict, without rowid;

create table tenant (
    tenant_no integer primary key check (tenant_no >= 0 and tenant_no < 1048576),
    name text not null unique,
    has_own integer not null default 0 check (has_own in (0, 1)),
    weight integer not null default 1 check (weight between 1 and 1000),
    tasks_max integer check (tasks_max > 0),
    n_ready integer not null default 0 check (n_ready >= 0),
    n_running integer not null default 0 check (n_running >= 0)
) strict;

create table worker (
    no integer primary key,
    id text not null unique,
    lease_micros integer not null check (lease_micros > 0),
    seen_at integer not null,
    -- registrations and heartbeats so far
    n_beats integer not null default 1 check (n_beats > 0),
    -- which of its queues the next claim begins with
    next_turn integer not null default 0 check (next_turn >= 0),
    state integer not null check (state between 0 and 15),
    -- whether it takes suspects, each with empty hands, and nothing else
    in_trial integer not null default 0 check (in_trial in (0, 1)),
    -- the last wake of other processes that told that its claims were taken
    taken_at_wake integer not null default 0,
    -- the file whose lock its process holds
    process_lock text not null default ''
) strict;
create index worker_alive on worker (no) where state < 2;

-- What live workers serve. A service is code that tasks need: that of a workflow version, under
-- the number of its definition.
create table serve (
    worker integer not null references worker (no),
    queue text not null,
    service integer not null,
    primary key (queue, service, worker)
) strict, without rowid;
create index serve_worker on serve (worker);

-- The queues of a worker in the order it takes turns.
create table worker_queue (
    worker integer not null references worker (no),
    turn integer not null check (turn >= 0),
    queue text not null,
    primary key (worker, turn)
) strict, without rowid;

-- Other rows name a run by its number, which is shorter and faster to find than its key.
create table run (
    no integer primary key,
    key blob not null unique check (length(key) = 16),
    tenant_no integer not null references tenant (tenant_no),
    id text not null,
    definition integer not null references definition (id),
    status integer not null check (status between 0 and 15),
    n_open integer not null check (n_open >= 0),
    n_failed integer not null check (n_failed >= 0),
    n_cancelled integer not null check (n_cancelled >= 0),
    cancelled integer not null check (cancelled in (0, 1)),
    -- signals that were sent to it, and those of them that nobody got yet
    n_signals integer not null default 0,
    n_unconsumed integer not null default 0,
    failure text,
    next_event integer not null check (next_event >= 2),
    end_event integer,
    started_at integer not null,
    deadline integer,
    ended_at integer,
    input_digest blob not null check (length(input_digest) = 32),
    -- a small input; a large one has a row of its own
    input_codec text,
    input blob,
    check ((ended_at is null) = (status < 2)),
    check ((end_event is null) = (ended_at is null)),
    check (end_event < next_event),
    check (status < 2 or n_open = 0),
    check (n_unconsumed between 0 and n_signals),
    check ((input is null) = (input_codec is null)),
    unique (tenant_no, id)
) strict;

-- Inputs that are too large for the hot rows.
create table input (
    run integer primary key references run (no),
    codec text not null,
    bytes blob not null
) strict;

create table task (
    run integer not null references run (no),
    node integer not null check (node >= 0),
    -- a list would be searched as a table, slowly
    state integer not null check (state between 0 and 15),
    n_unmet integer not null check (n_unmet >= 0),
    n_skipped integer not null check (n_skipped >= 0),
    attempt integer not null check (attempt >= 0),
    failures integer not null check (failures >= 0),
    losses integer not null check (losses >= 0),
    queued_logged integer not null check (queued_logged in (0, 1)),
    queued_at integer,
    due_at integer,
    started_at integer,
    worker integer references worker (no),
    token blob check (length(token) = 16),
    -- what ended its last wait: the number of a signal, 0 if time ran out
    resumed_by integer check (resumed_by >= 0),
    -- the number of the next memo of its function, 0 if that was never suspended
    next_memo integer not null default 0 check (next_memo >= 0),
    -- its last attempt, if that completed and noted nothing: claim and times stay in the row
    ended_at integer,
    first_event integer check (first_event > 1),
    with_queued integer check (with_queued in (0, 1)),
    -- a small output; a large one has a row of its own
    output_codec text,
    output blob,
    -- its place in a queue, while it can be claimed
    queue text,
    order_key integer check (order_key >= 0),
    number integer,
    position integer check (position >= 0),
    service integer,
    primary key (run, node),
    check (case when state = 2 or ended_at is not null
        then token is not null and worker is not null and started_at is not null
        else token is null and worker is null and started_at is null end),
    check (case when ended_at is null then first_event is null and with_queued is null
        else state = 5 and first_event is not null and with_queued is not null end),
    check ((output is null) = (output_codec is null) and (output is null or state = 5)),
    check ((queued_at is not null) = (state = 1 or state = 2 or ended_at is not null)),
    check (state <> 3 or due_at is not null),
    check (due_at is null or state = 1 or state = 3 or state = 4),
    check (n_unmet = 0 or state = 0 or state = 7 or state = 8),
    check (case when queue is null then order_key is null and number is null
            and position is null and service is null
        else state = 1 and due_at is null and order_key is not null and number is not null
            and position is not null and service is not null end)
) strict, without rowid;
create index task_claimed on task (worker) where state = 2;
-- Tasks that can be claimed now, and only those, with all that a claim looks at. By service first:
-- what others serve is not stepped over.
create unique index task_ready on task (queue, service, order_key, number, position, losses)
    where queue is not null;
-- The few of them that were lost before; a suspect is among these.
create index task_lost on task (queue, service, order_key, number, losses)
    where queue is not null and losses > 0;

-- Outputs that are too large for the rows of tasks.
create table output (
    run integer not null,
    node integer not null,
    codec text not null,
    bytes blob not null,
    primary key (run, node),
    foreign key (run, node) references task (run, node)
) strict, without rowid;

-- Attempts but those that the rows of completed tasks carry.
create table attempt (
    run integer not null,
    node integer not null,
    attempt integer not null check (attempt > 0),
    state integer not null check (state between 0 and 15),
    worker integer not null references worker (no),
    token blob not null check (length(token) = 16),
    queued_at integer not null,
    started_at integer not null,
    ended_at integer not null,
    first_event integer not null check (first_event > 1),
    with_queued integer not null check (with_queued in (0, 1)),
    failure text,
    retry text,
    notes text,
    primary key (run, node, attempt),
    foreign key (run, node) references task (run, node)
) strict, without rowid;

create table event (
    run integer not null references run (no),
    number integer not null check (number > 1),
    at integer not null,
    node integer check (node >= 0),
    attempt integer not null check (attempt >= 0),
    kind text not null,
    primary key (run, number)
) strict, without rowid;

-- What tasks wait for that are WAITING, and what functions wait for, whatever their state. A row is
-- never updated: it goes when its wait is over. It names tenant, definition and the key of its run,
-- so that the waiting runs of a workflow are found in the order of their keys, whatever others wait
-- for.
create table wait (
    run integer not null,
    node integer not null,
    -- the memo of a function that its end is recorded under, or nothing
    key text not null,
    -- that of the event that opened it, or that came next
    number integer not null check (number > 1),
    -- its place among those of a function that opened together
    place integer not null check (place >= 0),
    -- 0 for a signal, 1 for a sleep, 2 for a step that is tried again
    kind integer not null check (kind between 0 and 15),
    tenant_no integer not null references tenant (tenant_no),
    definition integer not null references definition (id),
    run_key blob not null check (length(run_key) = 16),
    -- names as a JSON array, and attributes as a JSON object
    signals text not null check ((json_array_length(signals) > 0) = (kind = 0)),
    matching text not null,
    n_signals_before integer not null check (n_signals_before >= 0),
    opened_at integer not null,
    deadline integer,
    primary key (run, node, key),
    foreign key (run, node) references task (run, node)
) strict, without rowid;
create index wait_tenant on wait (tenant_no, definition, run_key);

-- What running tasks told in their attempts. Only what was told under the token that a task has now
-- counts; rows of attempts that have ended go when their worker tells something next, or goes.
create table progress (
    run integer not null,
    node integer not null,
    token blob not null check (length(token) = 16),
    worker integer not null references worker (no),
    told_at integer not null,
    text text not null,
    primary key (run, node),
    foreign key (run, node) references task (run, node)
) strict, without rowid;
create index progress_worker on progress (worker);

-- What was sent to runs. It stays as long as its run, whoever got it.
create table signal (
    run integer not null references run (no),
    number integer not null check (number > 0),
    name text not null,
    key text not null,
    attributes text not null,
    digest blob not null check (length(digest) = 32),
    sent_at integer not null,
    consumed_by integer check (consumed_by >= 0),
    codec text not null,
    bytes blob not null,
    primary key (run, number),
    unique (run, key)
) strict, without rowid;
create index signal_unconsumed on signal (run, number) where consumed_by is null;

-- What functions have done or begun. Values may be large, so rows are not kept in the index.
create table memo (
    run integer not null,
    node integer not null,
    key text not null,
    -- its place in the order in which its function hears of it; 0 if it is not to be heard of yet
    number integer not null check (number >= 0),
    state integer not null check (state between 0 and 15),
    tries integer not null check (tries >= 0),
    began_at integer not null,
    at integer not null,
    -- when what was begun ends or is tried again
    due_at integer,
    -- the signal that ended a wait, or the number of a round
    refers_to integer check (refers_to >= 0),
    failure text,
    -- the claim under which it was stored, unless a decision stored it
    token blob check (length(token) = 16),
    -- a value, or the input of a round
    codec text,
    bytes blob,
    check ((bytes is null) = (codec is null)),
    unique (run, node, key),
    foreign key (run, node) references task (run, node)
) strict;

-- Tasks behind their tenant's limit.
create table throttled (
    tenant_no integer not null references tenant (tenant_no),
    number integer not null,
    queue text not null,
    service integer not null,
    losses integer not null check (losses >= 0),
    run integer not null,
    node integer not null,
    primary key (tenant_no, number),
    foreign key (run, node) references task (run, node)
) strict, without rowid;
create unique index throttled_task on throttled (run, node);

-- Tasks that no live worker serves.
create table parked (
    queue text not null,
    service integer not null,
    number integer not null,
    tenant_no integer not null references tenant (tenant_no),
    losses integer not null check (losses >= 0),
    run integer not null,
    node integer not null,
    primary key (queue, service, number),
    foreign key (run, node) references task (run, node)
) strict, without rowid;
create unique index parked_task on parked (run, node);
create index parked_tenant on parked (tenant_no);
-- By step: some may have got another queue, and follow.
create index parked_node on parked (queue, service, node, number);

-- Timers of tasks, and of runs as a whole: those have no task to refer to.
create table timer (
    due_at integer not null,
    number integer not null,
    run integer not null references run (no),
    node integer not null check (node >= 0),
    primary key (due_at, number)
) strict, without rowid;
create unique index timer_task on timer (run, node);

-- Where a tenant stands in a queue.
create table tenant_position (
    tenant_no integer not null references tenant (tenant_no),
    queue text not null,
    last integer not null check (last >= 0),
    primary key (tenant_no, queue)
) strict, without rowid;

-- The greatest position dequeued, per queue.
create table frontier (
    queue text primary key,
    position integer not null check (position >= 0)
) strict, without rowid;

create table leader (
    one integer primary key check (one = 1),
    worker text not null,
    epoch integer not null,
    until integer not null,
    ttl_micros integer not null check (ttl_micros > 0)
) strict;
