-- What functions have done or begun. What reads a memo gives its columns, its value, and the signal
-- that ended it.

-- name: put_memo
-- What a function may have heard of is never replaced.
insert into memo ({memo_names}, codec, bytes) values ({memo_values}, ?, ?)
on conflict (run, node, key) do update set {memo_excluded}, codec = excluded.codec,
    bytes = excluded.bytes
where memo.number = 0

-- name: set_memo_payload
update memo set codec = ?4, bytes = ?5 where run = ?1 and node = ?2 and key = ?3

-- name: find_memo
-- One that was stored under a claim.
select {memo} from memo
where run = (select no from run where run.key = ?1) and node = ?2 and key = ?3 and token = ?4

-- name: read_memos
select {memo}, memo.codec, memo.bytes, signal.codec, signal.bytes, signal.name
from memo
left join signal on signal.run = memo.run and signal.number = memo.refers_to
    and memo.state = {memo.SIGNALLED}
where memo.run = (select no from run where run.key = ?1) and (?2 is null or memo.node = ?2)
order by memo.node, memo.key

-- name: read_history
-- What is told of earlier executions of a task: whether it was suspended, its losses, whether its
-- run has signals that nobody got, and when it was first executed.
select task.next_memo > 0 or task.resumed_by is not null, task.losses > 0, run.n_unconsumed > 0,
    (select started_at from attempt
     where attempt.run = task.run and attempt.node = task.node and attempt.attempt = 1)
from run join task on task.run = run.no
where run.key = ?1 and task.node = ?2

-- name: forget_memo
delete from memo where run = ?1 and node = ?2 and key = ?3

-- name: clear_memos
delete from memo where run = ?1 and node = ?2

-- name: dump_memos
select {memo}, run.key from memo join run on run.no = memo.run order by run.key, node, memo.key
