-- passed_over: tasks that stand where their queue is said to be passed; there are none.
-- Safe: read only.
-- Index: whole tables: for checks only.
select ready.run, ready.node from stepwell.ready join stepwell.passed on passed.queue = ready.queue
where ready.order_key < passed.order_key
