-- read_some_outputs: outputs of some tasks.
-- Safe: read only.
-- Index: primary key of output.
select output.run, output.node, codec, bytes
from unnest($1::uuid[], $2::int[]) as asked (run, node)
join stepwell.output on output.run = asked.run and output.node = asked.node
