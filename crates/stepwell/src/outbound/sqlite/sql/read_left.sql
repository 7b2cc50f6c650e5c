-- read_left: what a task left: its state, and its output if it is small.
-- Safe: one snapshot.
-- Index: primary key of task, key of run.
select node, state, output_codec, output from task
where run = (select no from run where key = ?1) and node = ?2
