-- read_admitted: slots that limited tenants use, and ready or running tasks of all.
-- Safe: read only.
-- Index: whole tables: for checks only.
select t.name,
    (select count(*) from stepwell.ready where group_id = t.group_id)
    + (select count(*) from stepwell.task join stepwell.run on run.key = task.run
       where task.state = 2 and run.group_id = t.group_id)
from stepwell.tenant t
