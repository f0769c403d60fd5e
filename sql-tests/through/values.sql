SELECT 1, 'a', NULL, true, 1.5, 2.5::float8, 'x'::name, 'abc'::bytea

SELECT int2 '1', int4 '-2', int8 '9223372036854775807', numeric '123456789.000000001', 'NaN'::float4, 'Infinity'::float8

SELECT date '2024-02-29', time '12:34:56.789', timestamp '2024-02-29 12:34:56', timestamptz '2024-02-29 12:34:56+02', interval '1 mon 2 days 03:04:05'

SELECT ARRAY[1, 2, NULL], ARRAY[['a', 'b'], ['c', 'd']], '{}'::int[], ROW(1, 'x', NULL)

SELECT '{"a": [1, 2]}'::json, '{"a": [1, 2]}'::jsonb, '<a/>'::xml, '10.0.0.0/8'::cidr, '08:00:2b:01:02:03'::macaddr

SELECT int4range(1, 5), '(1,2)'::point, B'1010', 'a b'::tsvector, 'a & b'::tsquery, 'c56a4180-65aa-42ec-a945-5fd21dec0538'::uuid

SELECT repeat('long ', 100000)

SELECT g, repeat('x', g % 300) FROM generate_series(1, 20000) g

SELECT

SELECT 1 WHERE false

VALUES (1, 'a'), (2, NULL), (3, '')

SELECT 'ünïcödé 日本語 🐘', E'tab\tnew\nline', U&'\0441'

SELECT 1 AS "a b", 2 AS "A", 3 AS a, 4 AS a
