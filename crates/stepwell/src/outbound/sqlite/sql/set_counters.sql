-- set_counters: counters and the latest time as they are after a transaction.
-- Safe: one writer at a time, which knows that nobody else wrote since it read them.
-- Index: primary key of counter.
update counter set last_number = ?1, n_claims = ?2, last_epoch = ?3, now = ?4, n_told = ?5
where one = 1
