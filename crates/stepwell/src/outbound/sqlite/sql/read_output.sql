-- read_output: the output of a task.
-- Safe: read only.
-- Index: primary key of output, key of run.
select codec, bytes from output where run = (select no from run where key = ?1) and node = ?2
