-- clear_serve: workers serve nothing any more.
-- Safe: the workers' own rows.
-- Index: serve_worker.
delete from stepwell.serve where worker = any($1)
