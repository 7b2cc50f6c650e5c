-- lock_definitions: keep others from numbering definitions at the same time.
-- Safe: held until the end of the transaction; taken by registrations only.
-- Index: none.
lock table stepwell.definition in share row exclusive mode
