-- read_left: what a task left: its state, and its output if it is small.
-- Safe: one snapshot.
-- Index: primary key of task.
select node, state, output_codec, output from task where run = ?1 and node = ?2
