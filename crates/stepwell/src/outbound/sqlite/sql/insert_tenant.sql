-- insert_tenant: a tenant that appears for the first time.
-- Safe: one writer; unique name.
-- Index: primary key of tenant.
insert into tenant (group_id, name) values (?1, ?2)
