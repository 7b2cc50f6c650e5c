-- read_outputs: the outputs of a run.
-- Safe: one snapshot.
-- Index: primary keys of output and task, key of run.
select node, codec, bytes from output where run = (select no from run where key = ?1)
union all
select node, output_codec, output from task
where run = (select no from run where key = ?1) and output is not null
order by 1
