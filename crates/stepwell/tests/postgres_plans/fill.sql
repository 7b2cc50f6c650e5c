-- A hundred thousand rows in each hot table, in a schema of the test's own. Every constraint holds.
insert into definition (id, workflow, version, signature, body)
select n, 'workflow-' || n % 5, n, decode(lpad(to_hex(n), 64, '0'), 'hex'), '{}'
from generate_series(0, 19) n;
insert into step (definition, node, name) select n, 0, 'step' from generate_series(0, 19) n;
insert into tenant (tenant_no, name, has_own, weight, tasks_max)
select n, 'tenant-' || n, n % 10 = 0, 1, case n % 10 when 0 then 5 end
from generate_series(0, 99999) n;
insert into worker (no, id, queues, lease_micros, seen_at, state)
select n + 1, 'worker-' || n, array['default'], 30000000, 0, case when n < 10 then 0 else 2 end
from generate_series(0, 199) n;
insert into serve (queue, service, worker)
select 'default', d, w from generate_series(0, 19) d, generate_series(1, 10) w;
insert into run (key, tenant_no, id, definition, status, n_open, n_failed, n_cancelled, cancelled,
    next_event, end_event, started_at, ended_at, input_digest)
select lpad(to_hex(n), 32, '0')::uuid, n, 'run-' || n, n % 20, s, 1 - s / 2, 0, 0, false, 5,
    case s when 2 then 4 end, n, case s when 2 then n end, decode(repeat('00', 32), 'hex')
from (select n, case when n % 20 = 0 then 0 else 2 end as s from generate_series(0, 99999) n) r;
insert into input (run, codec, bytes) select key, 'json', '{}' from run;
-- One task in a thousand runs, one in a hundred is queued, the others are done.
insert into task (run, node, state, n_unmet, n_skipped, attempt, failures, losses, queued_logged,
    queued_at, started_at, worker, token, next_memo)
select lpad(to_hex(n), 32, '0')::uuid, 0, s, 0, 0, 1, 0, 0, true,
    case when s < 5 then n end, case s when 2 then n end, case s when 2 then n % 10 + 1 end,
    case s when 2 then lpad(to_hex(n), 32, '0')::uuid end, 0
from (select n, case when n % 1000 = 0 then 2 when n % 100 = 0 then 1 else 5 end as s
    from generate_series(0, 99999) n) t;
insert into claim (token, worker, runs, nodes, n_open)
select token, worker, array[run], array[node], 1 from task where state = 2;
insert into output (run, node, codec, bytes) select run, node, 'json', '{}' from task;
insert into attempt (run, node, attempt, state, worker, token, queued_at, started_at, ended_at,
    first_event, with_queued)
select run, node, 1, 0, 1, run, 0, 0, 0, 2, true from task;
insert into event (run, number, at, attempt, kind) select run, 9, 0, 0, '{}' from task;
insert into wait (run, node, key, number, place, kind, tenant_no, definition, signals, matching,
    n_signals_before, opened_at)
select key, 0, '', 2, 0, 0, tenant_no, definition, array['paid'], '{}', 0, 0 from run;
insert into memo (run, node, key, number, state, tries, began_at, at, codec, bytes)
select key, 0, 'step', 1, 1, 1, 0, 0, 'json', '{}' from run;
-- Half of the signals nobody got.
insert into signal (run, number, name, key, attributes, digest, sent_at, consumed_by, codec, bytes)
select key, 1, 'paid', 'key', '{}', decode(repeat('00', 32), 'hex'), 0,
    case tenant_no % 2 when 0 then 0 end, 'json', '{}'
from run;
insert into ready (queue, order_key, number, position, tenant_no, service, losses, run, node)
select 'default', n::bigint * 1048576, n, n, n, n % 20, 0, lpad(to_hex(n), 32, '0')::uuid, 0
from generate_series(0, 99999) n;
insert into admitted (tenant_no, number, run, node)
select n % 1000 * 10, n, lpad(to_hex(n), 32, '0')::uuid, 0 from generate_series(0, 99999) n;
insert into throttled (tenant_no, number, queue, service, losses, run, node)
select n % 1000 * 10, n, 'default', n % 20, 0, lpad(to_hex(n), 32, '0')::uuid, 0
from generate_series(0, 99999) n;
insert into parked (queue, service, number, tenant_no, losses, run, node)
select 'lonely', n % 20, n, n, 0, lpad(to_hex(n), 32, '0')::uuid, 0
from generate_series(0, 99999) n;
insert into timer (due_at, number, run, node)
select n, n, lpad(to_hex(n), 32, '0')::uuid, 0 from generate_series(0, 99999) n;
insert into tenant_position (tenant_no, queue, last)
select n, 'default', n from generate_series(0, 99999) n;
insert into frontier (queue, worker, position)
select 'default', n, n from generate_series(1, 200) n;
