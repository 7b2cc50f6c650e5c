-- 0002_views: what people read instead of tables; names and columns of views stay.
-- Safe: runs in one transaction under the migration lock; a crash leaves no view behind.
-- Index: a query that names a run by its tenant and id, or by its key, reads its rows only.

-- Every structure of every workflow.
create view stepwell.workflows as
select definition.workflow, definition.version, definition.id as definition,
    (select array_agg(name order by node)
     from json_array_elements_text(definition.body::json -> 'graph' -> 'names')
        with ordinality as step (name, node)) as steps,
    (definition.body::json -> 'policy' ->> 'on_failure')::boolean as on_failure,
    (definition.body::json -> 'policy' ->> 'fail_fast')::boolean as fail_fast,
    (select count(*) from stepwell.run
     where run.definition = definition.id and run.status < 2) as n_open_runs
from stepwell.definition;

create view stepwell.runs as
select tenant.name as tenant, run.id as run, definition.workflow, definition.version,
    (array['RUNNING', 'ENDING', 'COMPLETED', 'FAILED', 'CANCELLED'])[run.status + 1] as status,
    run.n_open, run.n_failed, run.n_cancelled, run.cancelled,
    run.failure::json ->> 'step' as failed_step,
    run.failure::json -> 'failure' ->> 'kind' as failure_kind,
    run.failure::json -> 'failure' ->> 'message' as failure,
    timestamptz 'epoch' + run.started_at * interval '1 microsecond' as started_at,
    timestamptz 'epoch' + run.ended_at * interval '1 microsecond' as ended_at,
    (run.ended_at - run.started_at) * interval '1 microsecond' as took,
    run.key
from stepwell.run
join stepwell.tenant using (group_id)
join stepwell.definition on definition.id = run.definition;

-- A task with what it waits for.
create view stepwell.tasks as
select tenant.name as tenant, run.id as run, definition.workflow,
    case task.node when 2000000000 then 'on_failure'
        else definition.body::json -> 'graph' -> 'names' ->> task.node end as step,
    (array['PENDING', 'QUEUED', 'RUNNING', 'SLEEPING', 'WAITING', 'COMPLETED', 'FAILED',
        'CANCELLED', 'SKIPPED'])[task.state + 1] as state,
    case
        when task.state = 0 then 'parents: ' || task.n_unmet || ' not resolved'
        when task.state = 1 and task.due_at is not null then 'retry: due at '
            || to_char(due.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
        when ready.queue is not null then 'ready: in queue ' || ready.queue
        when throttled.queue is not null then 'throttled: its tenant is at its limit of '
            || coalesce(case when tenant.has_own then tenant.tasks_max else
                (select tasks_max from stepwell.tenant_default) end::text, 'none')
        when parked.queue is not null then 'parked: nobody serves it in queue ' || parked.queue
        when task.state = 3 then 'sleep: until '
            || to_char(due.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
    end as waits_for,
    task.attempt, task.failures, task.losses,
    timestamptz 'epoch' + task.queued_at * interval '1 microsecond' as queued_at,
    timestamptz 'epoch' + task.started_at * interval '1 microsecond' as started_at,
    due.at as due_at,
    worker.id as worker, task.node, task.run as key
from stepwell.task
join stepwell.run on run.key = task.run
join stepwell.tenant using (group_id)
join stepwell.definition on definition.id = run.definition
left join stepwell.worker on worker.no = task.worker
left join stepwell.ready on ready.run = task.run and ready.node = task.node
left join stepwell.throttled on throttled.run = task.run and throttled.node = task.node
left join stepwell.parked on parked.run = task.run and parked.node = task.node
cross join lateral (
    select timestamptz 'epoch' + task.due_at * interval '1 microsecond' as at) as due;

create view stepwell.attempts as
select tenant.name as tenant, run.id as run, definition.workflow,
    case attempt.node when 2000000000 then 'on_failure'
        else definition.body::json -> 'graph' -> 'names' ->> attempt.node end as step,
    attempt.attempt,
    (array['COMPLETED', 'FAILED', 'TIMED_OUT', 'CANCELLED', 'LOST', 'RELEASED'])
        [attempt.state + 1] as state,
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
join stepwell.tenant using (group_id)
join stepwell.definition on definition.id = run.definition
join stepwell.worker on worker.no = attempt.worker;

-- The numbered log of runs. Regular events are read from attempts and from the run itself.
create view stepwell.events as
select tenant.name as tenant, run.id as run, definition.workflow, log.number,
    timestamptz 'epoch' + log.at * interval '1 microsecond' as at,
    case log.node when 2000000000 then 'on_failure'
        else definition.body::json -> 'graph' -> 'names' ->> log.node end as step,
    nullif(log.attempt, 0) as attempt, log.event, log.detail, log.node, run.key
from stepwell.run
join stepwell.tenant using (group_id)
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
    cross join lateral (values
        (0, attempt.queued_at, 'QUEUED', null),
        (attempt.with_queued::integer, attempt.started_at, 'STARTED', worker.id),
        (attempt.with_queued::integer + 1, attempt.ended_at,
            case when attempt.state in (1, 2) and attempt.retry is not null then 'RETRYING'
                else (array['COMPLETED', 'FAILED', 'FAILED', 'CANCELLED', 'LEASE_LOST',
                    'RELEASED'])[attempt.state + 1] end,
            attempt.failure::json ->> 'message')
    ) as part (number, at, event, detail)
    where attempt.run = run.key and (part.event <> 'QUEUED' or attempt.with_queued)
    union all
    select run.end_event, run.ended_at, null, 0, 'RUN_ENDED',
        (array['RUNNING', 'ENDING', 'COMPLETED', 'FAILED', 'CANCELLED'])[run.status + 1]
    where run.end_event is not null
) as log;

create view stepwell.timers as
select tenant.name as tenant, run.id as run, definition.workflow,
    case timer.node when 2000000000 then 'on_failure'
        else definition.body::json -> 'graph' -> 'names' ->> timer.node end as step,
    case task.state when 3 then 'sleep' else 'retry' end as timer,
    timestamptz 'epoch' + timer.due_at * interval '1 microsecond' as due_at,
    timer.node, timer.run as key
from stepwell.timer
join stepwell.task using (run, node)
join stepwell.run on run.key = timer.run
join stepwell.tenant using (group_id)
join stepwell.definition on definition.id = run.definition;

create view stepwell.workers as
select worker.id as worker, (array['ALIVE', 'GONE', 'DEAD'])[worker.state + 1] as state,
    worker.queues,
    array(select distinct definition.workflow || ' ' || definition.version
        from stepwell.serve join stepwell.definition on definition.id = serve.definition
        where serve.worker = worker.no order by 1) as workflows,
    (select coalesce(sum(claim.n_open), 0) from stepwell.claim
     where claim.worker = worker.no) as n_running,
    worker.lease_micros * interval '1 microsecond' as lease,
    timestamptz 'epoch' + worker.seen_at * interval '1 microsecond' as seen_at,
    exists (select 1 from stepwell.leader where leader.worker = worker.id) as leads
from stepwell.worker;

create view stepwell.queues as
select known.queue,
    (select count(*) from stepwell.ready where ready.queue = known.queue) as n_ready,
    (select count(*) from stepwell.throttled
     where throttled.queue = known.queue) as n_throttled,
    (select count(*) from stepwell.parked where parked.queue = known.queue) as n_parked,
    (select count(distinct serve.worker) from stepwell.serve
     where serve.queue = known.queue) as n_workers
from (select queue from stepwell.standing union select queue from stepwell.serve
    union select queue from stepwell.parked union select queue from stepwell.throttled) as known;

create view stepwell.tenants as
select tenant.name as tenant,
    case when tenant.has_own then tenant.weight else tenant_default.weight end as weight,
    case when tenant.has_own then tenant.tasks_max else tenant_default.tasks_max end as tasks_max,
    tenant.has_own as has_own_settings,
    (select count(*) from stepwell.ready
     where ready.group_id = tenant.group_id) as n_ready,
    (select count(*) from stepwell.claim
     cross join lateral unnest(claim.runs, claim.nodes) as held (run, node)
     join stepwell.task on task.run = held.run and task.node = held.node
        and task.token = claim.token
     join stepwell.run on run.key = task.run
     where run.group_id = tenant.group_id) as n_running,
    (select count(*) from stepwell.throttled
     where throttled.group_id = tenant.group_id) as n_throttled,
    (select count(*) from stepwell.parked
     where parked.group_id = tenant.group_id) as n_parked
from stepwell.tenant cross join stepwell.tenant_default;

-- What runs were given and what steps left. Payloads may be secret: rights are given apart.
create view stepwell.inputs as
select tenant.name as tenant, run.id as run, input.codec, length(input.bytes) as n_bytes,
    case input.codec when 'json' then convert_from(input.bytes, 'UTF8') end as input,
    input.run as key
from stepwell.input
join stepwell.run on run.key = input.run
join stepwell.tenant using (group_id);

create view stepwell.outputs as
select tenant.name as tenant, run.id as run,
    case output.node when 2000000000 then 'on_failure'
        else definition.body::json -> 'graph' -> 'names' ->> output.node end as step,
    output.codec, length(output.bytes) as n_bytes,
    case output.codec when 'json' then convert_from(output.bytes, 'UTF8') end as output,
    output.node, output.run as key
from stepwell.output
join stepwell.run on run.key = output.run
join stepwell.tenant using (group_id)
join stepwell.definition on definition.id = run.definition;
