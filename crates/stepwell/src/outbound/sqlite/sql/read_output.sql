-- read_output: the output of a task.
-- Safe: read only.
-- Index: primary key of output.
select codec, bytes from output where run = ?1 and node = ?2
