-- unserved_ready: ready tasks that no live worker serves.
-- Safe: one writer at a time.
-- Index: whole table: only when a worker comes or goes; primary key of serve.
select run, node from ready
where not exists (
    select 1 from serve where serve.queue = ready.queue and serve.definition = ready.definition)
order by number
