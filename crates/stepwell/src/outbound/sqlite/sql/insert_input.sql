-- insert_input: a run's input.
-- Safe: one writer at a time.
-- Index: primary key of input, key of run.
insert into input (run, codec, bytes) values ((select no from run where key = ?1), ?2, ?3)
