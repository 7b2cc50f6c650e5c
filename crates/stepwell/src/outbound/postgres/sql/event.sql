-- name: insert_events
insert into stepwell.event ({event_names}) select * from unnest({event_arrays})

-- name: read_events
select {event} from stepwell.event where run = $1 order by number

-- name: dump_events
select {event} from stepwell.event order by run, number
