-- clear_serve: a worker serves nothing any more.
-- Safe: one writer at a time.
-- Index: serve_worker.
delete from serve where worker = ?1
