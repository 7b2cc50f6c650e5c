-- Open waits.

-- name: insert_wait
insert into wait ({wait_names}) values ({wait_values})

-- name: delete_wait
delete from wait where run = ?1 and node = ?2 and key = ?3

-- name: delete_waits
delete from wait where run = ?1 and node = ?2

-- name: read_waits
select {wait} from wait where run = (select no from run where key = ?1) order by number, place, node

-- name: waiting_runs
-- By the index wait_tenant, which has the waits of one definition in the order of their runs' keys.
select distinct run_key from wait
where tenant_no = (select tenant_no from tenant where name = ?1)
    and definition = ?2 and run_key > ?3
    and exists (select 1 from json_each(wait.signals) where json_each.value = ?4)
order by run_key
limit ?5

-- name: dump_waits
select {wait} from wait order by run_key, number, place, node
