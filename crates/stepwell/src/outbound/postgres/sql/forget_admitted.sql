-- forget_admitted: a tenant without a limit needs no slots.
-- Safe: the tenant is locked.
-- Index: admitted_tenant.
delete from stepwell.admitted where group_id = $1
