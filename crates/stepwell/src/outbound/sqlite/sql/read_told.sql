-- read_told: how often there was something to see.
-- Safe: read only.
-- Index: primary key of counter.
select n_told from counter where one = 1
