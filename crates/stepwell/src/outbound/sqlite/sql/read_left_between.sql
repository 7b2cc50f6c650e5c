-- read_left_between: what tasks that are numbered without a gap left.
-- Safe: one snapshot.
-- Index: primary key of task.
select node, state, output_codec, output from task
where run = ?1 and node between ?2 and ?3
order by node
