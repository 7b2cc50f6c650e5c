-- read_outputs: all outputs of a run.
-- Safe: read only.
-- Index: primary key of output.
select run, node, codec, bytes from stepwell.output where run = $1 order by node
