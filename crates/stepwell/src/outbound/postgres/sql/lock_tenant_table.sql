-- lock_tenant_table: keep others from numbering tenants at the same time.
-- Safe: held until the end of a short transaction of its own.
-- Index: none.
lock table stepwell.tenant in share row exclusive mode
