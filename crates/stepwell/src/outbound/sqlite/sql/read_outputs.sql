-- read_outputs: all outputs of a run.
-- Safe: read only.
-- Index: primary key of output.
select node, codec, bytes from output where run = ?1 order by node
