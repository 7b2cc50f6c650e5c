-- take_numbers: spans of numbers of arrival, each of 2^20.
-- Safe: a sequence: numbers are never given twice.
-- Index: none.
select nextval('stepwell.arrival') from generate_series(1, $1::int)
