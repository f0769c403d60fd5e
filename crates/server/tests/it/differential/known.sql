-- The same values, of another type or under another name.
SELECT 1, 1, 'a', 'a', NULL, true, 1.50, 1e2
SELECT extract(year from timestamp '2024-01-31 12:34:56.5'), extract(month from date '2024-01-31')
SELECT extract(dow from date '2024-01-31'), extract(doy from date '2024-01-31'), extract(hour from timestamp '2024-01-31 12:34:56')
SELECT date_part('year', timestamp '2024-01-31 12:34:56')
SELECT (ARRAY[1, 2, 3])[2], array_length(ARRAY[1, 2], 1), cardinality(ARRAY[1, 2])
SELECT array_agg(node_name ORDER BY node_name) FROM nodes
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 5) SELECT sum(n) FROM t
SELECT * FROM generate_series(1, 3)

-- Refused: a function, a form or a name that is not known here.
SELECT abs(-3), abs(-3.5), sign(-2)
SELECT mod(7, 3), mod(7.5, 2)
SELECT position('c' in 'abc'), strpos('abc', 'c')
SELECT split_part('a,b,c', ',', 2), ascii('a'), chr(97), md5('a')
SELECT bool_and(is_primary), bool_or(is_primary), every(true) FROM nodes
SELECT interval '1 day', interval '1 month 2 days 03:04:05', interval '90 minutes'
SELECT interval '1 day' + interval '2 hours', interval '1 day' * 2
SELECT ARRAY[1, 2, 3], ARRAY['a', 'b'], '{1,2}'::int4[], ARRAY[]::text[]
SELECT sum(1), sum(1.5), avg(1.5), sum(1::float8), avg(2::float8) FROM nodes
SELECT stddev(port), variance(port) FROM network_addresses
SELECT count FROM (SELECT count(*) FROM nodes) x
SELECT x.max FROM (SELECT max(node_name) FROM nodes) x
SELECT "?column?" FROM (SELECT 1) x
SELECT node_name, (SELECT a.name FROM network_addresses a WHERE a.node = n.node_name) FROM nodes n
SELECT ARRAY(SELECT node_name FROM nodes ORDER BY node_name)
SELECT node_name, ARRAY(SELECT a.name FROM network_addresses a WHERE a.node = n.node_name) FROM nodes n
SELECT g FROM generate_series(1, 5, 2) g
SELECT n FROM nodes n WHERE false

-- Not right yet: values are other than PostgreSQL's, or printed otherwise.
SELECT round(2.5), round(3.567, 2), round(2.5::float8)
SELECT ceil(1.2), floor(1.7), trunc(1.75, 1)
SELECT power(2, 3), power(2.0, 3)
SELECT concat('a', 1, NULL, true), concat_ws(',', 'a', NULL, 'b')
SELECT to_hex(255), 'a'::varchar, 'abc'::varchar(2)
SELECT '\xdeadbeef'::bytea, 'abc'::bytea
SELECT extract(epoch from timestamp '2024-01-31 12:34:56.5'), extract(second from timestamp '2024-01-31 12:34:56.5')
SELECT '12:34:56'::time, time '01:02:03.5'
SELECT (timestamp '2024-01-31 12:00:00')::date, (timestamp '2024-01-31 12:00:00')::text, (date '2024-01-31')::text
SELECT * FROM (SELECT count(*) FROM nodes) x
SELECT * FROM (SELECT 1, 'a') x
SELECT 1 UNION SELECT 2 UNION ALL SELECT 2
SELECT 1 UNION SELECT 1.5
SELECT generate_series(1, 3)

-- Refused here too, with another SQLSTATE.
SELECT 40000::int2
SELECT 3000000000::int4
SELECT '99999999999'::int4
SELECT 'x'::date
SELECT '2024-02-30'::date
SELECT 'x'::timestamp
SELECT interval 'x'
SELECT '1'::nosuchtype
SELECT x.node_name FROM nodes n
SELECT upper(1, 2)
SELECT abs('x', 1)
SELECT sum('a')
SELECT 'a' + 1
SELECT true + 1
SELECT node_name + 1 FROM nodes
SELECT -'a'::text
SELECT 1 AND true
SELECT node_name FROM nodes WHERE count(*) > 1
SELECT sum(count(*)) FROM nodes
SELECT 1 FROM nodes GROUP BY 5
SELECT node_name FROM nodes ORDER BY 5
SELECT node_name FROM nodes LIMIT -1
SELECT node_name FROM nodes LIMIT 'x'
SELECT (SELECT 1, 2)
SELECT 1 IN (SELECT 1, 2)
SELECT * FROM nodes JOIN nodes ON true
WITH x AS (SELECT 1), x AS (SELECT 2) SELECT * FROM x
SELECT * FROM (SELECT 1 AS a, 2 AS a) x WHERE a = 1
SELECT row_number() FROM nodes
SELECT node_name FROM nodes WHERE row_number() OVER () = 1
SELECT FROM WHERE
SELECT $1
SELECT date '2024-01-01' + date '2024-01-02'
SELECT timestamp '2024-01-01' + 1
SELECT sqrt(-1)
SELECT sqrt(-1::float8)
SELECT 'abc' ~ '('
SELECT substring('abc', 1, -1)
SELECT extract(nothing from now())
SELECT date_trunc('nothing', now())
SELECT 1 LIKE 'a'
SELECT *
SELECT nodes.node_name FROM nodes n
SELECT * FROM generate_series(1, 'x')

-- The same in text; the test's client prints binary floats in another form.
SELECT 0.1::float4, 0.1::float8, 1e20::float8, 1e-7::float8, 'NaN'::float8, 'Infinity'::float8

-- Refused: not supported here.
SELECT to_char(timestamp '2024-01-31 13:04:05.123', 'HH12:MI:SS.MS AM'), to_char(timestamp '2024-01-31', 'Mon Month Dy Day DDD')
SELECT to_char(timestamp '2024-01-31', 'FMMonth DD, FMDDth')
SELECT '10.0.0.1'::inet::text
SELECT '{"a": 1}'::json::text, '{"a": 1}'::json
SELECT '{"a":1}'::jsonb
SELECT 1::oid, 'a'::name, 'a'::"char"
SELECT NOT EXISTS (SELECT 1 FROM nodes WHERE node_name = 'nope')
SELECT node_name FROM nodes ORDER BY node_name FETCH FIRST 1 ROW ONLY

-- PostgreSQL refuses it; here DataFusion converts, or takes the words otherwise.
SELECT 1 UNION SELECT 'a'
SELECT length(1)
SELECT 1 UNION SELECT node_name FROM nodes
SELECT CASE WHEN 1 THEN 2 END
SELECT * FROM nodes n, network_addresses n
SELECT 1::date
SELECT chr(0)
SELECT ln(0)
SELECT count(DISTINCT *) FROM nodes
