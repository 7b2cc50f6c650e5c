-- next_epoch: the next term of leadership.
-- Safe: a sequence: it only grows.
-- Index: none.
select nextval('stepwell.leader_epoch')
