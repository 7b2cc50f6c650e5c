-- read_left_between: what tasks that are numbered without a gap left.
-- Safe: one snapshot.
-- Index: primary key of task, key of run.
select node, state, output_codec, output from task
where run = (select no from run where key = ?1) and node between ?2 and ?3
order by node
