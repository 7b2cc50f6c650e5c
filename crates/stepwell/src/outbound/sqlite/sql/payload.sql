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
select codec, bytes, node from output where run = (select no from run where key = ?1)
union all
select output_codec, output, node from task
where run = (select no from run where key = ?1) and output is not null
order by node
