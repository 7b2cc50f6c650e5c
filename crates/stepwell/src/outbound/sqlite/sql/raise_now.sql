-- raise_now: keep the latest time written down; it never goes back.
-- Safe: one writer at a time.
-- Index: primary key of counter.
update counter set now = max(now, ?1) where one = 1 returning now
