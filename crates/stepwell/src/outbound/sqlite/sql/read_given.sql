-- read_given: what a run was given: definition, failure, and its input if it is small.
-- Safe: one snapshot.
-- Index: primary key of run.
select definition, failure, input_codec, input from run where key = ?1
