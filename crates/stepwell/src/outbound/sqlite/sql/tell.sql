-- tell: others have something to see from now on.
-- Safe: one writer at a time.
-- Index: primary key of counter.
update counter set n_told = n_told + 1 where one = 1 returning n_told
