-- insert_input: a run's input.
-- Safe: one writer at a time.
-- Index: primary key of input.
insert into input (run, codec, bytes) values (?1, ?2, ?3)
