-- insert_tenant: a tenant that appears for the first time.
-- Safe: the table is locked; unique name.
-- Index: primary key of tenant.
insert into stepwell.tenant (group_id, name)
values ((select coalesce(max(group_id) + 1, 0) from stepwell.tenant), $1)
on conflict (name) do nothing
