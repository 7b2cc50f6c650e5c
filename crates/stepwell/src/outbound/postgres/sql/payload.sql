-- name: insert_inputs
insert into stepwell.input ({input_names}) select * from unnest({input_arrays})

-- name: read_inputs
select {input} from stepwell.input where run = any($1)

-- name: insert_outputs
insert into stepwell.output ({output_names}) select * from unnest({output_arrays})

-- name: read_output
-- What a task left if it has completed: an output, or the signal it got; null if it has neither.
select task.run, task.node, coalesce(output.codec, signal.codec),
    coalesce(output.bytes, signal.bytes), signal.name, task.resumed_by
from stepwell.task
left join stepwell.output on output.run = task.run and output.node = task.node
left join stepwell.signal on signal.run = task.run and signal.number = task.resumed_by
where task.run = $1 and task.node = $2 and task.state = {task.COMPLETED}

-- name: read_outputs
-- What every completed task of a run left, as read_output gives it.
select task.run, task.node, coalesce(output.codec, signal.codec),
    coalesce(output.bytes, signal.bytes), signal.name, task.resumed_by
from stepwell.task
left join stepwell.output on output.run = task.run and output.node = task.node
left join stepwell.signal on signal.run = task.run and signal.number = task.resumed_by
where task.run = $1 and task.state = {task.COMPLETED}
order by task.node

-- name: read_some_outputs
select {output}
from unnest($1::uuid[], $2::int[]) as asked (run, node)
join stepwell.output on output.run = asked.run and output.node = asked.node
