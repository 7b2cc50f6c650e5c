-- pass_queue: say how far a queue was passed, how far it is, and who was joining it then.
-- Safe: a round is written once; whoever comes second writes nothing. Rows are never changed, so
--     that the newest is found at once however many the server has to keep.
-- Index: primary key of passed.
with older as (
    delete from stepwell.passed where queue = $1 and round < $2
)
insert into stepwell.passed (queue, round, order_key, frontier, joining)
values ($1, $2, $3, $4, $5)
on conflict (queue, round) do nothing
