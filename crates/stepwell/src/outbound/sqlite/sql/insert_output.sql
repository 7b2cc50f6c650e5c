-- insert_output: the output of a task.
-- Safe: one writer; the caller has checked the claim's token.
-- Index: primary key of output, key of run.
insert into output (run, node, codec, bytes)
values ((select no from run where key = ?1), ?2, ?3, ?4)
