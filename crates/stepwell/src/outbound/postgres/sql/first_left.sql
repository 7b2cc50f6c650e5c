-- first_left: the first place of a queue that is still taken.
-- Safe: read only; a later statement than the one that found who has ended.
-- Index: primary key of ready.
select order_key from stepwell.ready where queue = $1 and order_key >= $2
order by order_key, number limit 1
