-- name: insert_inputs
insert into stepwell.input ({input_names}) select * from unnest({input_arrays})

-- name: read_inputs
select {input} from stepwell.input where run = any($1)

-- name: insert_outputs
insert into stepwell.output ({output_names}) select * from unnest({output_arrays})

-- name: read_outputs
-- What every completed task of a run left; null for one without an output of its own.
select task.run, task.node, output.codec, output.bytes
from stepwell.task left join stepwell.output on output.run = task.run and output.node = task.node
where task.run = $1 and task.state = {task.COMPLETED}
order by task.node

-- name: read_some_outputs
select {output}
from unnest($1::uuid[], $2::int[]) as asked (run, node)
join stepwell.output on output.run = asked.run and output.node = asked.node
