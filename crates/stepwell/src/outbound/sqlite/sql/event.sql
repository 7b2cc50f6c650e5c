-- Events that follow from no other row.

-- name: insert_event
insert into event ({event_names}) values ({event_values})

-- name: read_events
select {event} from event where run = (select no from run where key = ?1) order by number

-- name: dump_events
select {event}, run.key from event join run on run.no = event.run order by run.key, number
