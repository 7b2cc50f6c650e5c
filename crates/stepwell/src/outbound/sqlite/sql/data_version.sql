-- data_version: whether another connection has changed the file.
-- Safe: read only.
-- Index: none.
pragma data_version
