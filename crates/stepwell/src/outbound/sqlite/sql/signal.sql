-- Signals. Who looks at their payloads reads codec and bytes behind the other columns.

-- name: insert_signal
insert into signal ({signal_names}, codec, bytes) values ({signal_values}, ?, ?)

-- name: consume_signal
update signal set consumed_by = ?3 where run = ?1 and number = ?2

-- name: find_signal
select {signal} from signal where run = (select no from run where key = ?1) and signal.key = ?2

-- name: read_unconsumed
select {signal} from signal
where run = (select no from run where key = ?1) and consumed_by is null
order by number

-- name: read_signals
select {signal}, codec, bytes from signal
where run = (select no from run where key = ?1)
order by number

-- name: read_signal_payload
select codec, bytes, name from signal
where run = (select no from run where key = ?1) and number = ?2

-- name: dump_signals
select {signal}, run.key from signal join run on run.no = signal.run order by run.key, number
