-- read_input: a run's input.
-- Safe: read only.
-- Index: primary key of input.
select codec, bytes from input where run = ?1
