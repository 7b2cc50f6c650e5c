-- read_frontier: the greatest position dequeued from a queue.
-- Safe: read only.
-- Index: primary key of frontier.
select position from frontier where queue = ?1
