-- Tenants.

-- name: insert_tenant
insert into tenant (tenant_no, name) values (?1, ?2)

-- name: count_tenants
-- Numbers are given without a gap, so the greatest one tells.
select coalesce(max(tenant_no) + 1, 0) from tenant

-- name: find_tenant
select {tenant} from tenant where name = ?1

-- name: read_tenant
select {tenant} from tenant where tenant_no = ?1

-- name: read_tenants
select {tenant} from tenant order by tenant_no

-- name: tenants_to_settle
select tenant_no from tenant where tenant_no >= ?1 and has_own = 0 order by tenant_no limit ?2

-- name: set_tenant
update tenant set has_own = 1, weight = ?2, tasks_max = ?3 where tenant_no = ?1

-- name: set_admitted
update tenant set n_ready = ?2, n_running = ?3 where tenant_no = ?1
