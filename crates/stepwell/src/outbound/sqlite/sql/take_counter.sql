-- take_counter: count one up and give the counters.
-- Safe: one writer at a time.
-- Index: primary key of counter.
update counter set last_number = last_number + ?1, n_claims = n_claims + ?2,
    last_epoch = last_epoch + ?3
where one = 1
returning last_number, n_claims, last_epoch, default_weight, default_tasks_max
