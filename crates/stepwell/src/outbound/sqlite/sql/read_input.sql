-- read_input: a run's input.
-- Safe: read only.
-- Index: primary key of input, key of run.
select codec, bytes from input where run = (select no from run where key = ?1)
