-- What people read instead of tables; names and columns of views stay. A query that names a run
-- by its tenant and id reads the rows of that run only.

-- Every structure of every workflow.
create view workflows as
select definition.workflow, definition.version, definition.id as definition,
    (select json_group_array(step.name) from (
        select name from step where step.definition = definition.id and step.node < 2000000000
        order by step.node) as step) as steps,
    definition.body ->> '$.policy.on_failure' as on_failure,
    definition.body ->> '$.policy.fail_fast' as fail_fast,
    (select count(*) from run
     where run.definition = definition.id and run.ended_at is null) as n_open_runs
from definition;

create view runs as
select tenant.name as tenant, run.id as run, definition.workflow, definition.version,
    run_status.name as status,
    run.n_open, run.n_failed, run.n_cancelled, run.cancelled,
    run.failure ->> '$.step' as failed_step,
    run.failure ->> '$.failure.kind' as failure_kind,
    run.failure ->> '$.failure.message' as failure,
    strftime('%Y-%m-%dT%H:%M:%fZ', run.started_at / 1e6, 'unixepoch') as started_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', run.deadline / 1e6, 'unixepoch') as deadline,
    strftime('%Y-%m-%dT%H:%M:%fZ', run.ended_at / 1e6, 'unixepoch') as ended_at,
    (run.ended_at - run.started_at) / 1e6 as took_secs,
    hex(run.key) as key
from run
join tenant using (tenant_no)
join definition on definition.id = run.definition
join run_status on run_status.number = run.status;

-- A task with what it waits for.
create view tasks as
select tenant.name as tenant, run.id as run, definition.workflow,
    step.name as step,
    task_state.name as state,
    case
        when task_state.name = 'PENDING' then 'parents: ' || task.n_unmet || ' not resolved'
        when task_state.name = 'QUEUED' and task.due_at is not null then 'retry: due at '
            || strftime('%Y-%m-%dT%H:%M:%SZ', task.due_at / 1e6, 'unixepoch')
        when task.queue is not null then 'ready: in queue ' || task.queue
        when throttled.queue is not null then 'throttled: its tenant is at its limit of '
            || coalesce(case when tenant.has_own then tenant.tasks_max else
                (select default_tasks_max from counter) end, 'none')
        when parked.queue is not null then 'parked: nobody serves it in queue ' || parked.queue
        when task_state.name = 'SLEEPING' then 'sleep: until '
            || strftime('%Y-%m-%dT%H:%M:%SZ', task.due_at / 1e6, 'unixepoch')
        when task_state.name = 'WAITING' then 'signal: '
            || (select group_concat(signal, ' or ') from (
                select each.value as signal from wait, json_each(wait.signals) as each
                where wait.run = task.run and wait.node = task.node
                group by each.value
                order by min(wait.number), min(wait.place), min(each.key)))
            || coalesce(', until ' || strftime('%Y-%m-%dT%H:%M:%SZ', (
                select min(wait.deadline) from wait
                where wait.run = task.run and wait.node = task.node) / 1e6, 'unixepoch'), '')
    end as waits_for,
    task.attempt, task.failures, task.losses,
    case when task.ended_at is null then
        strftime('%Y-%m-%dT%H:%M:%fZ', task.queued_at / 1e6, 'unixepoch') end as queued_at,
    case when task.ended_at is null then
        strftime('%Y-%m-%dT%H:%M:%fZ', task.started_at / 1e6, 'unixepoch') end as started_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', task.due_at / 1e6, 'unixepoch') as due_at,
    worker.id as worker, progress.text as progress, task.node, hex(run.key) as key
from task
join run on run.no = task.run
join tenant using (tenant_no)
join definition on definition.id = run.definition
join task_state on task_state.number = task.state
left join step on step.definition = run.definition and step.node = task.node
left join worker on worker.no = task.worker and task.ended_at is null
left join throttled on throttled.run = task.run and throttled.node = task.node
left join parked on parked.run = task.run and parked.node = task.node
left join progress on progress.run = task.run and progress.node = task.node
    and progress.token = task.token and task.ended_at is null;

-- Attempts that completed are read from the rows of tasks, all others have rows of their own.
create view attempts as
with named as not materialized (
    select run.no, run.key, tenant.name as tenant, run.id, definition.workflow, run.definition
    from run
    join tenant using (tenant_no)
    join definition on definition.id = run.definition
), every as (
    select named.*, attempt.node, attempt.attempt,
        (select name from attempt_state where number = attempt.state) as state,
        attempt.worker, attempt.queued_at, attempt.started_at, attempt.ended_at,
        attempt.failure, attempt.retry, attempt.notes
    from named join attempt on attempt.run = named.no
    union all
    select named.*, task.node, task.attempt, 'COMPLETED', task.worker, task.queued_at,
        task.started_at, task.ended_at, null, null, null
    from named join task on task.run = named.no and task.ended_at is not null
)
select tenant, id as run, workflow,
    (select step.name from step
     where step.definition = every.definition and step.node = every.node) as step,
    attempt,
    state, (select worker.id from worker where worker.no = every.worker) as worker,
    strftime('%Y-%m-%dT%H:%M:%fZ', queued_at / 1e6, 'unixepoch') as queued_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', started_at / 1e6, 'unixepoch') as started_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', ended_at / 1e6, 'unixepoch') as ended_at,
    (ended_at - started_at) / 1e6 as took_secs,
    failure ->> '$.kind' as failure_kind,
    failure ->> '$.message' as failure,
    strftime('%Y-%m-%dT%H:%M:%fZ', (retry ->> '$.due') / 1e6, 'unixepoch') as retry_due_at,
    notes, node, hex(key) as key
from every;

-- The numbered log of runs. Regular events are read from attempts and from the run itself.
create view events as
with named as not materialized (
    select run.no, run.key, tenant.name as tenant, run.id, definition.workflow, run.definition,
        run.status, run.started_at, run.ended_at, run.end_event
    from run
    join tenant using (tenant_no)
    join definition on definition.id = run.definition
), log as (
    select named.*, 1 as number, started_at as at, null as node, 0 as attempt,
        'RUN_STARTED' as event, null as detail
    from named
    union all
    select named.*, event.number, event.at, event.node, event.attempt, event.kind ->> '$.event',
        nullif(json_remove(event.kind, '$.event'), '{}')
    from named join event on event.run = named.no
    union all
    select named.*, first_event, attempt.queued_at, attempt.node, attempt.attempt, 'QUEUED', null
    from named join attempt on attempt.run = named.no and with_queued
    union all
    select named.*, first_event + with_queued, attempt.started_at, attempt.node, attempt.attempt,
        'STARTED', (select worker.id from worker where worker.no = attempt.worker)
    from named join attempt on attempt.run = named.no
    union all
    select named.*, first_event + with_queued + 1, attempt.ended_at, attempt.node,
        attempt.attempt,
        (select case when attempt.retry is null then event else event_if_retried end
         from attempt_state where number = attempt.state),
        attempt.failure ->> '$.message'
    from named join attempt on attempt.run = named.no
    union all
    select named.*, first_event, task.queued_at, task.node, task.attempt, 'QUEUED', null
    from named join task on task.run = named.no and task.with_queued
    union all
    select named.*, first_event + with_queued, task.started_at, task.node, task.attempt,
        'STARTED', (select worker.id from worker where worker.no = task.worker)
    from named join task on task.run = named.no and task.ended_at is not null
    union all
    select named.*, first_event + with_queued + 1, task.ended_at, task.node, task.attempt,
        'COMPLETED', null
    from named join task on task.run = named.no and task.ended_at is not null
    union all
    select named.*, end_event, named.ended_at, null, 0, 'RUN_ENDED',
        (select name from run_status where number = named.status)
    from named where end_event is not null
)
select tenant, id as run, workflow, number,
    strftime('%Y-%m-%dT%H:%M:%fZ', at / 1e6, 'unixepoch') as at,
    (select step.name from step
     where step.definition = log.definition and step.node = log.node) as step,
    nullif(attempt, 0) as attempt, event, detail, node, hex(key) as key
from log;

create view timers as
select tenant.name as tenant, run.id as run, definition.workflow, step.name as step,
    case when run_timer.name is not null then run_timer.name
        when task_state.name = 'SLEEPING' then 'sleep'
        when task_state.name = 'WAITING' then 'wait' else 'retry' end as timer,
    strftime('%Y-%m-%dT%H:%M:%fZ', timer.due_at / 1e6, 'unixepoch') as due_at,
    timer.node, hex(run.key) as key
from timer
join run on run.no = timer.run
join tenant using (tenant_no)
join definition on definition.id = run.definition
left join task on task.run = timer.run and task.node = timer.node
left join task_state on task_state.number = task.state
left join step on step.definition = run.definition and step.node = timer.node
left join run_timer on run_timer.node = timer.node;

-- What tasks and functions wait for, and until when.
create view waits as
select tenant.name as tenant, run.id as run, definition.workflow, step.name as step,
    nullif(wait.key, '') as memo_key, wait_kind.name as kind, wait.signals, wait.matching,
    strftime('%Y-%m-%dT%H:%M:%fZ', wait.opened_at / 1e6, 'unixepoch') as opened_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', wait.deadline / 1e6, 'unixepoch') as deadline,
    wait.node, hex(run.key) as key
from wait
join run on run.no = wait.run
join tenant on tenant.tenant_no = run.tenant_no
join definition on definition.id = run.definition
join wait_kind on wait_kind.number = wait.kind
left join step on step.definition = run.definition and step.node = wait.node;

create view workers as
select worker.id as worker,
    worker_state.name as state,
    (select json_group_array(queue) from (
        select queue from worker_queue where worker_queue.worker = worker.no order by turn)
    ) as queues,
    (select json_group_array(name) from (
        select distinct definition.workflow || ' ' || definition.version as name
        from serve join definition on definition.id = serve.service
        where serve.worker = worker.no order by 1)) as workflows,
    -- RUNNING by its number, as the index has it
    (select count(*) from task where task.worker = worker.no and task.state = 2) as n_running,
    worker.lease_micros / 1e6 as lease_secs,
    strftime('%Y-%m-%dT%H:%M:%fZ', worker.seen_at / 1e6, 'unixepoch') as seen_at,
    exists (select 1 from leader where leader.worker = worker.id) as leads,
    worker.in_trial
from worker
join worker_state on worker_state.number = worker.state;

create view queues as
select known.queue,
    (select count(*) from task where task.queue = known.queue) as n_ready,
    (select count(*) from throttled where throttled.queue = known.queue) as n_throttled,
    (select count(*) from parked where parked.queue = known.queue) as n_parked,
    (select count(distinct serve.worker) from serve
     where serve.queue = known.queue) as n_workers
from (select queue from tenant_position union select queue from serve
    union select queue from parked union select queue from throttled) as known;

create view tenants as
select tenant.name as tenant,
    case when tenant.has_own then tenant.weight else counter.default_weight end as weight,
    case when tenant.has_own then tenant.tasks_max else counter.default_tasks_max end
        as tasks_max,
    tenant.has_own as has_own_settings, tenant.n_ready, tenant.n_running,
    (select count(*) from throttled
     where throttled.tenant_no = tenant.tenant_no) as n_throttled,
    (select count(*) from parked where parked.tenant_no = tenant.tenant_no) as n_parked
from tenant cross join counter;

-- What runs were given, what they were sent and what steps left: small inputs and outputs lie in
-- the rows of runs and tasks.
create view inputs as
with given as (
    select tenant.name as tenant, run.key, run.id, input_codec as codec, input as bytes
    from run join tenant using (tenant_no)
    where run.input is not null
    union all
    select tenant.name as tenant, run.key, run.id, input.codec, input.bytes
    from run join tenant using (tenant_no) join input on input.run = run.no
)
select tenant, id as run, codec, length(bytes) as n_bytes,
    case codec when 'json' then cast(bytes as text) end as input, hex(key) as key
from given;

-- Every signal, and the step that got it.
create view signals as
select tenant.name as tenant, run.id as run, definition.workflow, signal.number,
    signal.name as signal, signal.key as signal_key, signal.attributes,
    strftime('%Y-%m-%dT%H:%M:%fZ', signal.sent_at / 1e6, 'unixepoch') as sent_at,
    step.name as consumed_by,
    signal.codec, length(signal.bytes) as n_bytes,
    case signal.codec when 'json' then cast(signal.bytes as text) end as payload,
    signal.consumed_by as node, hex(run.key) as key
from signal
join run on run.no = signal.run
join tenant using (tenant_no)
join definition on definition.id = run.definition
left join step on step.definition = run.definition and step.node = signal.consumed_by;

-- What functions have done or begun, with the values of their steps.
create view memos as
select tenant.name as tenant, run.id as run, definition.workflow, step.name as step,
    memo.key as memo_key, nullif(memo.number, 0) as number, memo_state.name as state, memo.tries,
    strftime('%Y-%m-%dT%H:%M:%fZ', memo.began_at / 1e6, 'unixepoch') as began_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', memo.at / 1e6, 'unixepoch') as stored_at,
    (memo.at - memo.began_at) / 1e6 as took_secs,
    strftime('%Y-%m-%dT%H:%M:%fZ', memo.due_at / 1e6, 'unixepoch') as due_at,
    memo.refers_to,
    memo.failure ->> '$.kind' as failure_kind,
    memo.failure ->> '$.message' as failure,
    memo.codec, length(memo.bytes) as n_bytes,
    case memo.codec when 'json' then cast(memo.bytes as text) end as value,
    memo.node, hex(run.key) as key
from memo
join run on run.no = memo.run
join tenant using (tenant_no)
join definition on definition.id = run.definition
join memo_state on memo_state.number = memo.state
left join step on step.definition = run.definition and step.node = memo.node;

-- A wait left the signal it got, or that its time ran out.
create view outputs as
with named as not materialized (
    select run.no, run.key, tenant.name as tenant, run.id, run.definition
    from run
    join tenant using (tenant_no)
), left_behind as (
    select named.*, task.node, task.output_codec as codec, task.output as bytes
    from named join task on task.run = named.no and task.output is not null
    union all
    select named.*, output.node, output.codec, output.bytes
    from named join output on output.run = named.no
    union all
    select named.*, task.node, coalesce(signal.codec, 'timed-out'), coalesce(signal.bytes, x'')
    from named
    join task on task.run = named.no and task.resumed_by is not null
    join task_state on task_state.number = task.state and task_state.name = 'COMPLETED'
    left join signal on signal.run = task.run and signal.number = task.resumed_by
)
select tenant, id as run,
    (select step.name from step
     where step.definition = left_behind.definition and step.node = left_behind.node) as step,
    codec, length(bytes) as n_bytes,
    case codec when 'json' then cast(bytes as text) end as output, node, hex(key) as key
from left_behind;
