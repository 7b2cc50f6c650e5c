-- name: insert_signals
insert into stepwell.signal ({signal_names}, codec, bytes)
select * from unnest({signal_arrays}, $9::text[], $10::bytea[])

-- name: consume_signals
-- Signals that were stored before, and who gets them now. The runs are locked.
update stepwell.signal set {signal_set}
from unnest({signal_change_arrays}) as c ({signal_change_names})
where signal.run = c.run and signal.number = c.number

-- name: find_signals
-- By the keys they were sent under. Read after the runs were locked, so what another call stored
-- under a key is visible. Index: unique (run, key).
select {signal}
from unnest($1::uuid[], $2::text[]) as asked (run, key)
join stepwell.signal on signal.run = asked.run and signal.key = asked.key

-- name: unconsumed_signals
-- Read after the runs were locked. Index: signal_unconsumed.
select {signal} from stepwell.signal where signal.run = any($1) and signal.consumed_by is null

-- name: read_signals
select {signal}, signal.codec, signal.bytes from stepwell.signal
where signal.run = $1
order by signal.number

-- name: read_brought
-- What signals brought.
select signal.run, signal.number, signal.name, signal.codec, signal.bytes
from unnest($1::uuid[], $2::bigint[]) as asked (run, number)
join stepwell.signal on signal.run = asked.run and signal.number = asked.number

-- name: read_received
-- What signals brought that these tasks got.
select signal.run, signal.number, signal.name, signal.codec, signal.bytes
from unnest($1::uuid[], $2::int[]) as asked (run, node)
join stepwell.task on task.run = asked.run and task.node = asked.node
join stepwell.signal on signal.run = task.run and signal.number = task.resumed_by

-- name: dump_signals
select {signal} from stepwell.signal order by signal.run, signal.number
