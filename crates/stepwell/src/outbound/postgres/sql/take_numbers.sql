-- take_numbers: the next numbers of arrival.
-- Safe: a sequence: numbers are never given twice.
-- Index: none.
select nextval('stepwell.arrival') from generate_series(1, $1::int)
