-- What people read instead of tables; names and columns of views stay. A query that names a run
-- by its tenant and id, or by its key, reads the rows of that run only.

-- Every structure of every workflow.
create view stepwell.workflows as
select definition.workflow, definition.version, definition.id as definition,
    (select array_agg(step.name order by step.node) from stepwell.step
     where step.definition = definition.id and step.node < 2000000000) as steps,
    (definition.body::json -> 'policy' ->> 'on_failure')::boolean as on_failure,
    (definition.body::json -> 'policy' ->> 'fail_fast')::boolean as fail_fast,
    (select count(*) from stepwell.run
     where run.definition = definition.id and run.ended_at is null) as n_open_runs
from stepwell.definition;

create view stepwell.runs as
select tenant.name as tenant, run.id as run, definition.workflow, definition.version,
    run_status.name as status,
    run.n_open, run.n_failed, run.n_cancelled, run.cancelled,
    run.failure::json ->> 'step' as failed_step,
    run.failure::json -> 'failure' ->> 'kind' as failure_kind,
    run.failure::json -> 'failure' ->> 'message' as failure,
    timestamptz 'epoch' + run.started_at * interval '1 microsecond' as started_at,
    timestamptz 'epoch' + run.deadline * interval '1 microsecond' as deadline,
    timestamptz 'epoch' + run.ended_at * interval '1 microsecond' as ended_at,
    (run.ended_at - run.started_at) * interval '1 microsecond' as took,
    run.key
from stepwell.run
join stepwell.tenant using (tenant_no)
join stepwell.definition on definition.id = run.definition
join stepwell.run_status on run_status.number = run.status;

-- A task with what it waits for.
create view stepwell.tasks as
select tenant.name as tenant, run.id as run, definition.workflow,
    step.name as step,
    task_state.name as state,
    case
        when task_state.name = 'PENDING' then 'parents: ' || task.n_unmet || ' not resolved'
        when task_state.name = 'QUEUED' and task.due_at is not null then 'retry: due at '
            || to_char(due.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
        when ready.queue is not null then 'ready: in queue ' || ready.queue
        when throttled.queue is not null then 'throttled: its tenant is at its limit of '
            || coalesce(case when tenant.has_own then tenant.tasks_max else
                (select tasks_max from stepwell.tenant_default) end::text, 'none')
        when parked.queue is not null then 'parked: nobody serves it in queue ' || parked.queue
        when task_state.name = 'SLEEPING' then 'sleep: until '
            || to_char(due.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
        when task_state.name = 'WAITING' then 'signal: '
            || array_to_string(array(
                select each.signal from stepwell.wait
                cross join lateral unnest(wait.signals) with ordinality as each (signal, place)
                where wait.run = task.run and wait.node = task.node
                group by each.signal
                order by min(wait.number), min(wait.place), min(each.place)), ' or ')
            || coalesce(', until ' || to_char((timestamptz 'epoch' + (
                select min(wait.deadline) from stepwell.wait
                where wait.run = task.run and wait.node = task.node)
                * interval '1 microsecond') at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), '')
    end as waits_for,
    task.attempt, task.failures, task.losses,
    timestamptz 'epoch' + task.queued_at * interval '1 microsecond' as queued_at,
    timestamptz 'epoch' + task.started_at * interval '1 microsecond' as started_at,
    due.at as due_at,
    worker.id as worker, progress.text as progress, task.node, task.run as key
from stepwell.task
join stepwell.run on run.key = task.run
join stepwell.tenant using (tenant_no)
join stepwell.definition on definition.id = run.definition
join stepwell.task_state on task_state.number = task.state
left join stepwell.step on step.definition = run.definition and step.node = task.node
left join stepwell.worker on worker.no = task.worker
left join stepwell.ready on ready.run = task.run and ready.node = task.node
left join stepwell.throttled on throttled.run = task.run and throttled.node = task.node
left join stepwell.parked on parked.run = task.run and parked.node = task.node
left join stepwell.progress on progress.run = task.run and progress.node = task.node
    and progress.token = task.token
cross join lateral (
    select timestamptz 'epoch' + task.due_at * interval '1 microsecond' as at) as due;

create view stepwell.attempts as
select tenant.name as tenant, run.id as run, definition.workflow,
    step.name as step,
    attempt.attempt,
    attempt_state.name as state,
    worker.id as worker,
    timestamptz 'epoch' + attempt.queued_at * interval '1 microsecond' as queued_at,
    timestamptz 'epoch' + attempt.started_at * interval '1 microsecond' as started_at,
    timestamptz 'epoch' + attempt.ended_at * interval '1 microsecond' as ended_at,
    (attempt.ended_at - attempt.started_at) * interval '1 microsecond' as took,
    attempt.failure::json ->> 'kind' as failure_kind,
    attempt.failure::json ->> 'message' as failure,
    timestamptz 'epoch'
        + (attempt.retry::json ->> 'due')::bigint * interval '1 microsecond' as retry_due_at,
    attempt.notes::json as notes, attempt.node, attempt.run as key
from stepwell.attempt
join stepwell.run on run.key = attempt.run
join stepwell.tenant using (tenant_no)
join stepwell.definition on definition.id = run.definition
join stepwell.attempt_state on attempt_state.number = attempt.state
left join stepwell.step on step.definition = run.definition and step.node = attempt.node
join stepwell.worker on worker.no = attempt.worker;

-- The numbered log of runs. Regular events are read from attempts and from the run itself.
create view stepwell.events as
select tenant.name as tenant, run.id as run, definition.workflow, log.number,
    timestamptz 'epoch' + log.at * interval '1 microsecond' as at,
    step.name as step,
    nullif(log.attempt, 0) as attempt, log.event, log.detail, log.node, run.key
from stepwell.run
join stepwell.tenant using (tenant_no)
join stepwell.definition on definition.id = run.definition
cross join lateral (
    select 1::bigint as number, run.started_at as at, null::integer as node, 0 as attempt,
        'RUN_STARTED' as event, null::text as detail
    union all
    select event.number, event.at, event.node, event.attempt, event.kind::json ->> 'event',
        nullif((event.kind::jsonb - 'event')::text, '{}')
    from stepwell.event where event.run = run.key
    union all
    select attempt.first_event + part.number, part.at, attempt.node, attempt.attempt, part.event,
        part.detail
    from stepwell.attempt
    join stepwell.worker on worker.no = attempt.worker
    join stepwell.attempt_state on attempt_state.number = attempt.state
    cross join lateral (values
        (0, attempt.queued_at, 'QUEUED', null),
        (attempt.with_queued::integer, attempt.started_at, 'STARTED', worker.id),
        (attempt.with_queued::integer + 1, attempt.ended_at,
            case when attempt.retry is null then attempt_state.event
                else attempt_state.event_if_retried end,
            attempt.failure::json ->> 'message')
    ) as part (number, at, event, detail)
    where attempt.run = run.key and (part.event <> 'QUEUED' or attempt.with_queued)
    union all
    select run.end_event, run.ended_at, null, 0, 'RUN_ENDED', run_status.name
    from stepwell.run_status where run_status.number = run.status and run.end_event is not null
) as log
left join stepwell.step on step.definition = run.definition and step.node = log.node;

create view stepwell.timers as
select tenant.name as tenant, run.id as run, definition.workflow, step.name as step,
    case when run_timer.name is not null then run_timer.name
        when task_state.name = 'SLEEPING' then 'sleep'
        when task_state.name = 'WAITING' then 'wait' else 'retry' end as timer,
    timestamptz 'epoch' + timer.due_at * interval '1 microsecond' as due_at,
    timer.node, timer.run as key
from stepwell.timer
join stepwell.run on run.key = timer.run
join stepwell.tenant using (tenant_no)
join stepwell.definition on definition.id = run.definition
left join stepwell.task on task.run = timer.run and task.node = timer.node
left join stepwell.task_state on task_state.number = task.state
left join stepwell.step on step.definition = run.definition and step.node = timer.node
left join stepwell.run_timer on run_timer.node = timer.node;

-- What tasks and functions wait for, and until when.
create view stepwell.waits as
select tenant.name as tenant, run.id as run, definition.workflow, step.name as step,
    nullif(wait.key, '') as memo_key, wait_kind.name as kind, wait.signals,
    wait.matching::json as matching,
    timestamptz 'epoch' + wait.opened_at * interval '1 microsecond' as opened_at,
    timestamptz 'epoch' + wait.deadline * interval '1 microsecond' as deadline,
    wait.node, wait.run as key
from stepwell.wait
join stepwell.run on run.key = wait.run
join stepwell.tenant on tenant.tenant_no = run.tenant_no
join stepwell.definition on definition.id = run.definition
join stepwell.wait_kind on wait_kind.number = wait.kind
left join stepwell.step on step.definition = run.definition and step.node = wait.node;

create view stepwell.workers as
select worker.id as worker, worker_state.name as state,
    worker.queues,
    array(select distinct definition.workflow || ' ' || definition.version
        from stepwell.serve join stepwell.definition on definition.id = serve.service
        where serve.worker = worker.no order by 1) as workflows,
    (select coalesce(sum(claim.n_open), 0) from stepwell.claim
     where claim.worker = worker.no) as n_running,
    worker.lease_micros * interval '1 microsecond' as lease,
    timestamptz 'epoch' + worker.seen_at * interval '1 microsecond' as seen_at,
    exists (select 1 from stepwell.leader where leader.worker = worker.id) as leads,
    worker.in_trial
from stepwell.worker
join stepwell.worker_state on worker_state.number = worker.state;

create view stepwell.queues as
select known.queue,
    (select count(*) from stepwell.ready where ready.queue = known.queue) as n_ready,
    (select count(*) from stepwell.throttled
     where throttled.queue = known.queue) as n_throttled,
    (select count(*) from stepwell.parked where parked.queue = known.queue) as n_parked,
    (select count(distinct serve.worker) from stepwell.serve
     where serve.queue = known.queue) as n_workers
from (select queue from stepwell.tenant_position union select queue from stepwell.serve
    union select queue from stepwell.parked union select queue from stepwell.throttled) as known;

create view stepwell.tenants as
select tenant.name as tenant,
    case when tenant.has_own then tenant.weight else tenant_default.weight end as weight,
    case when tenant.has_own then tenant.tasks_max else tenant_default.tasks_max end as tasks_max,
    tenant.has_own as has_own_settings,
    (select count(*) from stepwell.ready
     where ready.tenant_no = tenant.tenant_no) as n_ready,
    (select count(*) from stepwell.claim
     cross join lateral unnest(claim.runs, claim.nodes) as held (run, node)
     join stepwell.task on task.run = held.run and task.node = held.node
        and task.token = claim.token
     join stepwell.run on run.key = task.run
     where run.tenant_no = tenant.tenant_no) as n_running,
    (select count(*) from stepwell.throttled
     where throttled.tenant_no = tenant.tenant_no) as n_throttled,
    (select count(*) from stepwell.parked
     where parked.tenant_no = tenant.tenant_no) as n_parked
from stepwell.tenant cross join stepwell.tenant_default;

-- What runs were given, what they were sent and what steps left. Payloads may be secret: rights are
-- given apart.
create view stepwell.inputs as
select tenant.name as tenant, run.id as run, input.codec, length(input.bytes) as n_bytes,
    case input.codec when 'json' then convert_from(input.bytes, 'UTF8') end as input,
    input.run as key
from stepwell.input
join stepwell.run on run.key = input.run
join stepwell.tenant using (tenant_no);

-- Every signal, and the step that got it.
create view stepwell.signals as
select tenant.name as tenant, run.id as run, definition.workflow, signal.number,
    signal.name as signal, signal.key as signal_key, signal.attributes::json as attributes,
    timestamptz 'epoch' + signal.sent_at * interval '1 microsecond' as sent_at,
    step.name as consumed_by,
    signal.codec, length(signal.bytes) as n_bytes,
    case signal.codec when 'json' then convert_from(signal.bytes, 'UTF8') end as payload,
    signal.consumed_by as node, signal.run as key
from stepwell.signal
join stepwell.run on run.key = signal.run
join stepwell.tenant using (tenant_no)
join stepwell.definition on definition.id = run.definition
left join stepwell.step on step.definition = run.definition and step.node = signal.consumed_by;

-- What functions have done or begun, with the values of their steps.
create view stepwell.memos as
select tenant.name as tenant, run.id as run, definition.workflow, step.name as step,
    memo.key as memo_key, nullif(memo.number, 0) as number, memo_state.name as state, memo.tries,
    timestamptz 'epoch' + memo.began_at * interval '1 microsecond' as began_at,
    timestamptz 'epoch' + memo.at * interval '1 microsecond' as stored_at,
    (memo.at - memo.began_at) * interval '1 microsecond' as took,
    timestamptz 'epoch' + memo.due_at * interval '1 microsecond' as due_at,
    memo.refers_to,
    memo.failure::json ->> 'kind' as failure_kind,
    memo.failure::json ->> 'message' as failure,
    memo.codec, length(memo.bytes) as n_bytes,
    case memo.codec when 'json' then convert_from(memo.bytes, 'UTF8') end as value,
    memo.node, memo.run as key
from stepwell.memo
join stepwell.run on run.key = memo.run
join stepwell.tenant using (tenant_no)
join stepwell.definition on definition.id = run.definition
join stepwell.memo_state on memo_state.number = memo.state
left join stepwell.step on step.definition = run.definition and step.node = memo.node;

-- A wait left the signal it got, or that its time ran out.
create view stepwell.outputs as
select tenant.name as tenant, run.id as run,
    step.name as step,
    output.codec, length(output.bytes) as n_bytes,
    case output.codec when 'json' then convert_from(output.bytes, 'UTF8') end as output,
    output.node, run.key
from stepwell.run
join stepwell.tenant using (tenant_no)
cross join lateral (
    select output.node, output.codec, output.bytes from stepwell.output where output.run = run.key
    union all
    select task.node, coalesce(signal.codec, 'timed-out'), coalesce(signal.bytes, ''::bytea)
    from stepwell.task
    join stepwell.task_state on task_state.number = task.state
    left join stepwell.signal on signal.run = task.run and signal.number = task.resumed_by
    where task.run = run.key and task_state.name = 'COMPLETED' and task.resumed_by is not null
) as output
left join stepwell.step on step.definition = run.definition and step.node = output.node;
