-- read_served: which queues and definitions live workers serve.
-- Safe: read only.
-- Index: primary key of serve.
select distinct queue, definition from stepwell.serve
