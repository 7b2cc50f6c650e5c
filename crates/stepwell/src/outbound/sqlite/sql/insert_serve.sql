-- insert_serve: what a worker serves.
-- Safe: one writer at a time.
-- Index: primary key of serve.
insert or ignore into serve (worker, queue, definition) values (?1, ?2, ?3)
