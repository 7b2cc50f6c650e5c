-- read_inputs: inputs of runs.
-- Safe: read only.
-- Index: primary key of input.
select run, codec, bytes from stepwell.input where run = any($1)
