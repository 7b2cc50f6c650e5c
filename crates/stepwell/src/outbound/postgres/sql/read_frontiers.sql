-- read_frontiers: the greatest position dequeued from each queue.
-- Safe: read only.
-- Index: primary key of frontier.
select queue, max(position) from stepwell.frontier where queue = any($1) group by queue
