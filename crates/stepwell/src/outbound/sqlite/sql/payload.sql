-- Inputs and outputs that are too large for the rows of runs and tasks.

-- name: insert_input
insert into input (run, codec, bytes) values (?1, ?2, ?3)

-- name: read_input
select codec, bytes from input where run = (select no from run where key = ?1)

-- name: insert_output
insert into output (run, node, codec, bytes) values (?1, ?2, ?3, ?4)

-- name: read_output
select codec, bytes from output where run = (select no from run where key = ?1) and node = ?2

-- name: read_outputs
-- A completed task that was resumed is a wait node: it left what it got.
select coalesce(task.output_codec, output.codec, signal.codec),
    coalesce(task.output, output.bytes, signal.bytes), task.node, task.resumed_by, signal.name
from task
left join output on output.run = task.run and output.node = task.node
left join signal on signal.run = task.run and signal.number = task.resumed_by
where task.run = (select no from run where key = ?1) and task.state = {task.COMPLETED}
order by task.node
