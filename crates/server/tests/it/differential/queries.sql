-- Literals, widths and arithmetic.
SELECT 1
SELECT 2147483647
SELECT 2147483648
SELECT -7
SELECT 7 + 2 AS x
SELECT 7 - 2 AS x
SELECT 7 * 2 AS x
SELECT 7 / 2 AS x
SELECT 7 % 2 AS x
SELECT 7.5 + 2 AS x
SELECT 7.5 - 2 AS x
SELECT 7.5 * 2 AS x
SELECT 7.5 / 2 AS x
SELECT 7.5 % 2 AS x
SELECT 2147483647 + 1 AS x
SELECT 2147483647 - 1 AS x
SELECT 2147483647 * 1 AS x
SELECT 2147483647 / 1 AS x
SELECT 2147483647 % 1 AS x
SELECT 9223372036854775807 + 1 AS x
SELECT 9223372036854775807 - 1 AS x
SELECT 9223372036854775807 * 1 AS x
SELECT 9223372036854775807 / 1 AS x
SELECT 9223372036854775807 % 1 AS x
SELECT -7 + 2 AS x
SELECT -7 - 2 AS x
SELECT -7 * 2 AS x
SELECT -7 / 2 AS x
SELECT -7 % 2 AS x
SELECT 3::int8 + 4 AS x
SELECT 3::int8 - 4 AS x
SELECT 3::int8 * 4 AS x
SELECT 3::int8 / 4 AS x
SELECT 3::int8 % 4 AS x
SELECT 2::int2 + 3::int2 AS x
SELECT 2::int2 - 3::int2 AS x
SELECT 2::int2 * 3::int2 AS x
SELECT 2::int2 / 3::int2 AS x
SELECT 2::int2 % 3::int2 AS x
SELECT 1.5 + 2.25 AS x
SELECT 1.5 - 2.25 AS x
SELECT 1.5 * 2.25 AS x
SELECT 1.5 / 2.25 AS x
SELECT 1.5 % 2.25 AS x
SELECT 7 + 0 AS x
SELECT 7 - 0 AS x
SELECT 7 * 0 AS x
SELECT 7 / 0 AS x
SELECT 7 % 0 AS x
SELECT 7.0 + 0 AS x
SELECT 7.0 - 0 AS x
SELECT 7.0 * 0 AS x
SELECT 7.0 / 0 AS x
SELECT 7.0 % 0 AS x
SELECT 1e3 + 3 AS x
SELECT 1e3 - 3 AS x
SELECT 1e3 * 3 AS x
SELECT 1e3 / 3 AS x
SELECT 1.5::float8 + 2 AS x
SELECT 1.5::float8 - 2 AS x
SELECT 1.5::float8 * 2 AS x
SELECT 1.5::float8 / 2 AS x
SELECT 0.1::float4 + 3 AS x
SELECT 0.1::float4 - 3 AS x
SELECT 0.1::float4 * 3 AS x
SELECT 0.1::float4 / 3 AS x
SELECT 1, 1, 'a', 'a', NULL, true, 1.50, 1e2
SELECT 1 AS a, 2 AS a
SELECT 99999999999999999999
SELECT -2147483648
SELECT 1 + NULL
SELECT 5 / 2 * 2.0 AS x
SELECT 1.10 + 2.2
SELECT 123456789.123456789 * 2
SELECT 10.0 / 4
SELECT 1 / 3.0
SELECT 20000.0 / 3
SELECT 2 ^ 3
SELECT abs(-3), abs(-3.5), sign(-2)
SELECT round(2.5), round(3.567, 2), round(2.5::float8)
SELECT ceil(1.2), floor(1.7), trunc(1.75, 1)
SELECT ceil(1.2::float8), floor(1.7::float8), trunc(1.75::float8)
SELECT mod(7, 3), mod(7.5, 2)
SELECT power(2, 3), power(2.0, 3)
SELECT sqrt(4), sqrt(2::float8)
SELECT exp(0::float8), ln(1::float8)
SELECT greatest(1, 2, 3), least(1.5, 2)
SELECT 1 = 1.0, 1 < 2, 2 >= 3
SELECT 5 & 3, 5 | 3, 5 # 3, 1 << 4, 256 >> 2
SELECT 1::int8, 1::int2, 1::float4, 1::float8, 1::numeric, 1::numeric(10,2), 1::text
SELECT 40000::int2
SELECT 3000000000::int4
SELECT '12'::int4, ' 12 '::int4, '12'::int8, '1.5'::numeric, '1.50'::float8
SELECT 'x'::int4
SELECT 'x'::float8
SELECT 'x'::numeric
SELECT 'x'::bool
SELECT '99999999999'::int4
SELECT 't'::bool, 'no'::bool, 1::bool, true::int4, true::text
SELECT 1.5::int4, 2.5::int4, -1.5::int4, 2.5::float8::int4
SELECT 0.1::float4, 0.1::float8, 1e20::float8, 1e-7::float8, 'NaN'::float8, 'Infinity'::float8
-- Text.
SELECT length('abc'), char_length('äö'), octet_length('äö'), bit_length('a')
SELECT upper('a'), lower('A'), initcap('ab cd')
SELECT 'a' || 'b', 'a' || 1, 1 || 'a', NULL || 'a'
SELECT concat('a', 1, NULL, true), concat_ws(',', 'a', NULL, 'b')
SELECT substring('abcdef' from 2 for 3), substring('abcdef', 2), substr('abcdef', 2, 2)
SELECT left('abcdef', 2), right('abcdef', 2), left('abcdef', -2)
SELECT position('c' in 'abc'), strpos('abc', 'c')
SELECT trim('  a '), ltrim('xxa', 'x'), rtrim('axx', 'x'), btrim('xax', 'x'), trim(both 'x' from 'xax')
SELECT replace('abc', 'b', 'x'), translate('abc', 'ab', 'xy'), reverse('abc'), repeat('ab', 2)
SELECT lpad('a', 3, 'x'), rpad('a', 3, 'x'), lpad('abc', 2)
SELECT split_part('a,b,c', ',', 2), ascii('a'), chr(97), md5('a')
SELECT starts_with('abc', 'ab'), overlay('abcdef' placing 'x' from 2 for 3)
SELECT 'abc' LIKE 'a%', 'abc' LIKE '_b_', 'abc' NOT LIKE 'b%', 'ABC' ILIKE 'a%', 'abc' ~~ 'a%'
SELECT 'a%c' LIKE 'a!%c' ESCAPE '!', 'abc' LIKE 'a!%c' ESCAPE '!', 'a/_' LIKE 'a//_' ESCAPE '/'
SELECT 'a_b' LIKE 'a\_b', 'axb' LIKE 'a\_b', 'a_b' LIKE 'a^_b' ESCAPE '^'
SELECT 'abc' ~ '^a', 'abc' !~ '^a', 'ABC' ~* '^a', 'ABC' !~* '^a'
SELECT 'abc' SIMILAR TO 'a%', 'abc' SIMILAR TO '(a|b)%', 'abc' SIMILAR TO 'b', 'abc' SIMILAR TO '_b_', 'abc' NOT SIMILAR TO 'a'
SELECT regexp_replace('foobar', 'o+', 'x'), regexp_replace('foobar', 'o', 'x', 'g')
SELECT quote_literal('a''b'), quote_ident('a b')
SELECT to_hex(255), 'a'::varchar, 'abc'::varchar(2)
SELECT E'a\nb', 'a''b', $$x$$
SELECT 'a' < 'b', 'a' = 'A', 'a' IN ('a', 'b'), 'b' BETWEEN 'a' AND 'c'
SELECT 'abc' COLLATE "C"
SELECT format('%s-%s', 'a', 1)
SELECT coalesce(NULL, 'x'), nullif(1, 1), nullif('a', 'b')
SELECT encode('abc'::bytea, 'hex'), decode('616263', 'hex')
SELECT '\xdeadbeef'::bytea, 'abc'::bytea
-- Truths, NULLs, CASE.
SELECT true AND NULL, false AND NULL, true OR NULL, NOT true
SELECT NULL IS NULL, 1 IS NOT NULL, true IS TRUE, NULL::bool IS UNKNOWN
SELECT 1 IS DISTINCT FROM 2, NULL IS DISTINCT FROM NULL, 1 IS NOT DISTINCT FROM NULL
SELECT CASE WHEN true THEN 1 ELSE 2 END, CASE 1 WHEN 1 THEN 'a' END
SELECT CASE WHEN false THEN 1 ELSE 2.5 END
SELECT 1 IN (1, 2), 1 NOT IN (2, NULL), 3 BETWEEN 1 AND 5, 3 NOT BETWEEN 1 AND 2
SELECT bool_and(is_primary), bool_or(is_primary), every(true) FROM nodes
-- Dates, times, intervals.
SELECT '2024-01-31'::date, date '2024-02-01'
SELECT timestamp '2024-01-31 12:00:00', '2024-01-31 12:00:00.5'::timestamp
SELECT timestamptz '2024-01-31 12:00:00+02', '2024-01-31 12:00:00'::timestamptz
SELECT '2024-01-31'::date + 1, '2024-01-31'::date - 1, '2024-03-01'::date - '2024-02-01'::date
SELECT interval '1 day', interval '1 month 2 days 03:04:05', interval '90 minutes'
SELECT interval '1 year 2 months', interval '-1 day', interval '1.5 hours', interval '100 hours'
SELECT '1 day'::interval, interval '1' day, interval '0'
SELECT timestamp '2024-01-31 12:00:00' + interval '1 month', timestamp '2024-01-31' - interval '1 hour'
SELECT timestamp '2024-01-31 12:00:00' - timestamp '2024-01-30 11:00:00'
SELECT date '2024-01-31' + interval '1 day'
SELECT interval '1 day' + interval '2 hours', interval '1 day' * 2
SELECT extract(year from timestamp '2024-01-31 12:34:56.5'), extract(month from date '2024-01-31')
SELECT extract(epoch from timestamp '2024-01-31 12:34:56.5'), extract(second from timestamp '2024-01-31 12:34:56.5')
SELECT extract(dow from date '2024-01-31'), extract(doy from date '2024-01-31'), extract(hour from timestamp '2024-01-31 12:34:56')
SELECT date_part('year', timestamp '2024-01-31 12:34:56')
SELECT date_trunc('month', timestamp '2024-01-31 12:34:56'), date_trunc('hour', timestamp '2024-01-31 12:34:56')
SELECT to_char(timestamp '2024-01-31 13:04:05', 'YYYY-MM-DD HH24:MI:SS')
SELECT to_char(timestamp '2024-01-31 13:04:05', 'YYYY-MM-DD"T"HH24:MI:SS'), to_char(date '2024-01-05', 'DD.MM.YY')
SELECT to_char(timestamp '2024-01-31 13:04:05.123', 'HH12:MI:SS.MS AM'), to_char(timestamp '2024-01-31', 'Mon Month Dy Day DDD')
SELECT to_char(timestamp '2024-01-31', 'FMMonth DD, FMDDth')
SELECT '12:34:56'::time, time '01:02:03.5'
SELECT 'x'::date
SELECT '2024-02-30'::date
SELECT 'x'::timestamp
SELECT interval 'x'
SELECT timestamp '2024-01-31' < timestamp '2024-02-01', date '2024-01-01' = timestamp '2024-01-01'
SELECT (timestamp '2024-01-31 12:00:00')::date, (timestamp '2024-01-31 12:00:00')::text, (date '2024-01-31')::text
SELECT now() IS NOT NULL, current_timestamp = now(), current_date = now()::date
SELECT now() - now()
SELECT to_timestamp(0), make_date(2024, 1, 2)
-- Other types.
SELECT '10.0.0.1'::inet::text
SELECT '10.0.0.0/8'::cidr::text
SELECT '{"a": 1}'::json::text, '{"a": 1}'::json
SELECT '{"a":1}'::jsonb
SELECT ARRAY[1, 2, 3], ARRAY['a', 'b'], '{1,2}'::int4[], ARRAY[]::text[]
SELECT (ARRAY[1, 2, 3])[2], array_length(ARRAY[1, 2], 1), cardinality(ARRAY[1, 2])
SELECT 1 = ANY(ARRAY[1, 2]), 3 = ANY('{1,2}'::int4[]), 1 <> ALL(ARRAY[2, 3])
SELECT ARRAY[1, 2] || 3, array_append(ARRAY[1], 2), array_to_string(ARRAY['a', 'b'], ',')
SELECT string_to_array('a,b', ',')
SELECT 1::oid, 'a'::name, 'a'::"char"
SELECT '{x}'::int4[]
SELECT '1'::nosuchtype
-- Queries.
SELECT count(*), count(node_id), count(DISTINCT subcluster_name) FROM nodes
SELECT sum(port), avg(port), min(port), max(port) FROM network_addresses
SELECT sum(node_id), min(node_name), max(node_name) FROM nodes
SELECT avg(node_id - node_id + 3) FROM nodes
SELECT sum(1), sum(1.5), avg(1.5), sum(1::float8), avg(2::float8) FROM nodes
SELECT sum(port) FROM network_addresses WHERE false
SELECT count(*) FILTER (WHERE is_primary) FROM nodes
SELECT string_agg(node_name, ',' ORDER BY node_name) FROM nodes
SELECT array_agg(node_name ORDER BY node_name) FROM nodes
SELECT stddev(port), variance(port) FROM network_addresses
SELECT subcluster_name, count(*) FROM nodes GROUP BY subcluster_name HAVING count(*) > 1
SELECT subcluster_name, count(*) AS n FROM nodes GROUP BY 1 ORDER BY n DESC, 1
SELECT upper(node_name) FROM nodes GROUP BY upper(node_name)
SELECT DISTINCT subcluster_name FROM nodes
SELECT DISTINCT ON (subcluster_name) subcluster_name, node_name FROM nodes ORDER BY subcluster_name, node_name
SELECT n.node_name, a.name FROM nodes n JOIN network_addresses a ON a.node = n.node_name
SELECT n.node_name, a.name FROM nodes n LEFT JOIN network_addresses a ON a.node = n.node_name AND a.name = 'a1'
SELECT * FROM (SELECT count(*) FROM nodes) x
SELECT count FROM (SELECT count(*) FROM nodes) x
SELECT x.max FROM (SELECT max(node_name) FROM nodes) x
SELECT "?column?" FROM (SELECT 1) x
SELECT * FROM (SELECT 1, 'a') x
SELECT * FROM (VALUES (1, 'a'), (2, 'b')) v(n, t)
VALUES (1, 'a'), (2, NULL)
WITH x AS (SELECT node_name FROM nodes) SELECT count(*) FROM x
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 5) SELECT sum(n) FROM t
SELECT 1 UNION SELECT 2 UNION ALL SELECT 2
SELECT 1 UNION SELECT 1.5
SELECT 1 UNION ALL SELECT 2.50
SELECT 1.5 UNION ALL SELECT 2.25 UNION ALL SELECT 3 UNION ALL SELECT NULL UNION ALL SELECT '7'
SELECT n + 1 FROM (SELECT 1 AS n UNION ALL SELECT 1.5) t
SELECT DISTINCT upper(node_name) FROM nodes ORDER BY upper(node_name) DESC
SELECT DISTINCT node_name AS shown FROM nodes n ORDER BY n.node_name
SELECT DISTINCT node_name FROM nodes ORDER BY upper(node_name)
SELECT DISTINCT ON (node_name) node_name FROM nodes ORDER BY node_id
SELECT now() AT TIME ZONE 'UTC' WHERE false
SELECT to_date('2026-02-03', 'YYYY-MM-DD'), to_date('2026', 'YYYY-MM-DD'), to_date('03 Mar 2026', 'DD Mon YYYY')
SELECT to_timestamp('2026-01-02 03:04:05.12', 'YYYY-MM-DD HH24:MI:SS.US'), to_timestamp('20260102030405', 'YYYYMMDDHH24MISS')
SELECT to_date('2026-02-30', 'YYYY-MM-DD')
SELECT to_date('2026-xx-01', 'YYYY-MM-DD')
SELECT to_timestamp('2026-01-01 13:00', 'YYYY-MM-DD HH12:MI')
SELECT to_timestamp(1500.5)
SELECT 1 UNION SELECT 'a'
SELECT 1, 2 UNION SELECT 1
SELECT node_name FROM nodes INTERSECT SELECT node FROM network_addresses
SELECT node_name FROM nodes EXCEPT SELECT node FROM network_addresses WHERE name = 'a1'
SELECT EXISTS (SELECT 1 FROM nodes), EXISTS (SELECT 1 FROM nodes WHERE false)
SELECT NOT EXISTS (SELECT 1 FROM nodes WHERE node_name = 'nope')
SELECT node_name, EXISTS (SELECT 1 FROM network_addresses a WHERE a.node = n.node_name) FROM nodes n
SELECT node_name FROM nodes n WHERE EXISTS (SELECT 1 FROM network_addresses a WHERE a.node = n.node_name AND a.port > 5440)
SELECT node_name FROM nodes WHERE node_name IN (SELECT node FROM network_addresses)
SELECT node_name, node_name IN (SELECT node FROM network_addresses) AS listed FROM nodes
SELECT (SELECT count(*) FROM nodes), (SELECT max(name) FROM network_addresses)
SELECT node_name, (SELECT count(*) FROM network_addresses a WHERE a.node = n.node_name) FROM nodes n
SELECT node_name, (SELECT a.name FROM network_addresses a WHERE a.node = n.node_name) FROM nodes n
SELECT (SELECT node_name FROM nodes)
SELECT ARRAY(SELECT node_name FROM nodes ORDER BY node_name)
SELECT array(SELECT 1)
SELECT node_name, ARRAY(SELECT a.name FROM network_addresses a WHERE a.node = n.node_name) FROM nodes n
SELECT n.node_name, x.name FROM nodes n CROSS JOIN LATERAL (SELECT a.name FROM network_addresses a WHERE a.node = n.node_name) x
SELECT n.node_name, x.c FROM nodes n LEFT JOIN LATERAL (SELECT count(*) AS c FROM network_addresses a WHERE a.node = n.node_name) x ON true
SELECT generate_series(1, 3)
SELECT * FROM generate_series(1, 3)
SELECT g FROM generate_series(1, 5, 2) g
SELECT unnest(ARRAY[1, 2, 3])
SELECT * FROM unnest(ARRAY['a', 'b']) u
SELECT node_name, row_number() OVER (ORDER BY node_name) FROM nodes
SELECT node_name, rank() OVER (ORDER BY subcluster_name), count(*) OVER () FROM nodes
SELECT sum(port) OVER (PARTITION BY subcluster_name) FROM nodes
SELECT lag(node_name) OVER (ORDER BY node_name) FROM nodes
SELECT node_name FROM nodes ORDER BY node_name LIMIT 2 OFFSET 1
SELECT node_name FROM nodes ORDER BY node_name FETCH FIRST 1 ROW ONLY
SELECT node_name FROM nodes ORDER BY 1 DESC NULLS LAST LIMIT 1
SELECT node_name || '-' || port FROM nodes
SELECT n FROM nodes n WHERE false
SELECT nodes.* FROM nodes WHERE false
SELECT node_name AS "Name", port "P" FROM nodes
SELECT NODE_NAME FROM NODES
SELECT a.port / b.port FROM nodes a, nodes b WHERE b.port <> 0 AND a.port <> 0
SELECT count(*) + 1, count(*) * 2.0 FROM nodes
SELECT max(port) - min(port) FROM network_addresses
SELECT current_database() IS NOT NULL, current_schema() IS NOT NULL
-- Mistakes.
SELECT * FROM nothing
SELECT * FROM nothing.nothing
SELECT nothing FROM nodes
SELECT n.nothing FROM nodes n
SELECT x.node_name FROM nodes n
SELECT node_name FROM nodes a, nodes b
SELECT nofunction(1)
SELECT length(1)
SELECT upper(1, 2)
SELECT upper()
SELECT abs('x', 1)
SELECT sum('a')
SELECT 'a' + 1
SELECT true + 1
SELECT node_name + 1 FROM nodes
SELECT -'a'::text
SELECT NOT 1
SELECT node_name FROM nodes WHERE 1
SELECT node_name FROM nodes WHERE node_name
SELECT 1 AND true
SELECT node_name = 1 FROM nodes
SELECT node_name FROM nodes WHERE port = 'x'
SELECT node_name, count(*) FROM nodes
SELECT node_name FROM nodes GROUP BY subcluster_name
SELECT node_name FROM nodes WHERE count(*) > 1
SELECT sum(count(*)) FROM nodes
SELECT node_name FROM nodes HAVING true
SELECT 1 FROM nodes GROUP BY 5
SELECT node_name FROM nodes ORDER BY 5
SELECT node_name FROM nodes ORDER BY nothing
SELECT node_name FROM nodes LIMIT -1
SELECT node_name FROM nodes LIMIT 'x'
SELECT 1 UNION SELECT node_name FROM nodes
SELECT CASE WHEN 1 THEN 2 END
SELECT CASE WHEN true THEN 1 ELSE true END
SELECT coalesce(1, 'x')
SELECT 1 IN ('x')
SELECT (SELECT 1, 2)
SELECT 1 IN (SELECT 1, 2)
SELECT * FROM nodes JOIN nodes ON true
SELECT * FROM nodes n, network_addresses n
WITH x AS (SELECT 1), x AS (SELECT 2) SELECT * FROM x
SELECT * FROM (SELECT 1 AS a, 2 AS a) x WHERE a = 1
SELECT row_number() FROM nodes
SELECT node_name FROM nodes WHERE row_number() OVER () = 1
SELECT 1 FROM
SELECT FROM WHERE
SELEC 1
SELECT 1 +
SELECT (1
SELECT 'a
SELECT 1 1
SELECT * FROM nodes WHERE
SELECT $1
SELECT date '2024-01-01' + date '2024-01-02'
SELECT timestamp '2024-01-01' + 1
SELECT ARRAY[1, 'x']
SELECT true < 1
SELECT 1::date
SELECT chr(0)
SELECT ln(0)
SELECT sqrt(-1)
SELECT sqrt(-1::float8)
SELECT 'abc' ~ '('
SELECT substring('abc', 1, -1)
SELECT extract(nothing from now())
SELECT date_trunc('nothing', now())
SELECT cast('a' AS int4)
SELECT 1 LIKE 'a'
SELECT *
SELECT count(DISTINCT *) FROM nodes
SELECT nodes.node_name FROM nodes n
SELECT * FROM generate_series(1, 'x')
-- Subqueries without rows, rows as values, arrays with NULL in them.
SELECT x FROM (VALUES (1),(2)) v(x) WHERE (SELECT true WHERE false) IS NULL
SELECT (SELECT 1 WHERE false), (SELECT 1 LIMIT 0), coalesce((SELECT 1 WHERE false), 5)
SELECT (SELECT 1 UNION SELECT 2)
SELECT (SELECT 'a' WHERE true), (SELECT count(*) WHERE false)
SELECT (SELECT t.x) FROM (VALUES (1)) t(x)
SELECT x, (SELECT count(*) FROM (VALUES (1),(2)) u(y) WHERE y < t.x) FROM (VALUES (1),(2),(3)) t(x)
SELECT x, (SELECT max(y) FROM (VALUES (1),(2)) u(y) WHERE y <= t.x) AS m FROM (VALUES (0),(1),(3)) t(x)
SELECT x FROM (VALUES (1),(1),(2)) a(x) EXCEPT ALL SELECT 1
SELECT x FROM (VALUES (1),(1)) a(x) INTERSECT ALL SELECT 1
SELECT x FROM (VALUES (1),(2)) a(x) FULL JOIN (VALUES (2),(3)) b(x) USING (x)
SELECT x FROM (VALUES (1),(2)) a(x) RIGHT JOIN (VALUES (2),(3)) b(x) USING (x)
SELECT * FROM (VALUES (1),(2)) a(x) NATURAL FULL JOIN (VALUES (2),(3)) b(x)
SELECT a.x, b.x FROM (VALUES (1),(2)) a(x) FULL JOIN (VALUES (2),(3)) b(x) ON a.x = b.x
SELECT x FROM (VALUES (1),(2)) a(x) LEFT JOIN (VALUES (2),(3)) b(x) USING (x)
SELECT 2 = ANY(ARRAY[NULL,1]), NOT 2 = ANY(ARRAY[NULL,1]), 1 = ANY(ARRAY[NULL,1]), 2 = ANY(ARRAY[3,1])
SELECT 2 <> ALL(ARRAY[NULL,1]), 1 <> ALL(ARRAY[NULL,1]), 1 = ALL(ARRAY[1,NULL]), 2 > ALL(ARRAY[1,NULL]), 2 < ALL(ARRAY[1,NULL])
SELECT 2 > ANY(ARRAY[NULL,1]), 1 > ANY(ARRAY[NULL,1]), 1 <> ANY(ARRAY[NULL,1]), 1 <= ALL(ARRAY[1,2])
SELECT x = ANY(a), x <> ALL(a), x > ANY(a), x >= ALL(a) FROM (VALUES (1, '{1,NULL}'::int4[]), (2, '{1,NULL}'::int4[]), (3, '{1,2}'::int4[]), (3, NULL::int4[])) v(x, a)
SELECT 1 = ANY('{1,2}'), 'a' = ANY('{b,NULL}'), 'a' = ANY('{}')
SELECT -2 ^ 2, - 2 ^ 2 ^ 2, 2 ^ -1 ^ 2, -(2 ^ 2), 0 - 2 ^ 2
SELECT ROW(NULL,NULL) IS NULL, ROW(1,NULL) IS NOT NULL, ROW(1,NULL) IS NULL, (1,2) IS NOT NULL
SELECT (1,2) = (1,2), (1,2) < (1,3), (1,NULL) = (1,2), (1,NULL) = (2,2), (2,1) >= (1,NULL), (1,2) <> (1,3)
SELECT (1,2) IN ((1,2),(3,4)), (1,NULL) IN ((1,2)), (5,6) NOT IN ((1,2),(3,4)), (1,2) IS DISTINCT FROM (1,NULL)
SELECT (1,2) = (1,2,3)
SELECT (1,2)
SELECT ROW(1,'a')
SELECT x, count(*) FROM (VALUES (1,2),(1,2)) v(x,y) GROUP BY (x, y)
SELECT -x AS x FROM (VALUES (1),(2)) v(x) ORDER BY x+0
SELECT -x AS x FROM (VALUES (1),(2)) v(x) ORDER BY x+0 LIMIT 1
SELECT -x AS x FROM (VALUES (1),(2)) v(x) ORDER BY x LIMIT 1
SELECT -x AS y FROM (VALUES (1),(2)) v(x) ORDER BY y+0
SELECT * FROM (SELECT -x AS x FROM (VALUES (1),(2)) v(x) ORDER BY x+0 LIMIT 1) z
-- Numbers at their limits.
SELECT 99999999999999999999999999999999999999 + 1
SELECT 9999999999999999999999999999999999999.9 + 1
SELECT 99999999999999999999999999999999999999 * 10
SELECT 12345678901234567890 * 1000000, 12345678901234567890.5 + 0.25
SELECT to_hex(-1), to_hex(-1::int8), to_hex(255), to_hex(4294967296)
-- Ages.
SELECT age(timestamp '2001-04-10', timestamp '1957-06-13'), age(date '2024-03-01', date '2023-02-28')
SELECT age(timestamp '2024-03-31', timestamp '2024-02-29'), age(timestamp '2024-02-29', timestamp '2024-03-31')
SELECT age(timestamp '2024-03-01 01:00', timestamp '2024-02-28 23:30'), age(timestamp '2024-01-01', timestamp '2024-01-01')
SELECT age(timestamp '1957-06-13', timestamp '2001-04-10 12:00'), age(date '2023-01-31', date '2023-03-01')
-- More of arrays.
SELECT array_remove(ARRAY[1,2,1], 1), array_replace(ARRAY[1,2,1], 1, 9)
SELECT ARRAY(SELECT generate_series(1,3)), array_dims(ARRAY[1,2]), array_dims(ARRAY[]::int4[])
SELECT * FROM (SELECT generate_series(1,3)) x
SELECT ARRAY[[1,2],[3,4]]
SELECT json_build_object('b', ARRAY[1,2]), json_build_object('b', ARRAY['x','y']), jsonb_build_object('b', ARRAY[1,NULL])
SELECT * FROM generate_series(5,7) WITH ORDINALITY
SELECT * FROM generate_series(5,7) WITH ORDINALITY AS t(a, b)
SELECT * FROM unnest(ARRAY['a','b']) WITH ORDINALITY
SELECT n, v FROM unnest(ARRAY['a','b']) WITH ORDINALITY AS t(v, n) ORDER BY n DESC
SELECT t.ordinality, t.x FROM unnest(ARRAY['a','b']) WITH ORDINALITY AS t(x)
-- Characters, JSON, addresses.
SELECT 'abc'::char(5) = 'abc'
SELECT length('abc'::char(5))
SELECT 'a'::char AS x, 'abc'::char AS y
SELECT 'not json'::jsonb
SELECT '{'::json
SELECT '{"a":1} x'::json
SELECT '[1,2]'::jsonb = '[1, 2]'::jsonb, '{"a":1,"a":2}'::jsonb, '{"b":1,"aa":2,"a":[1.50,true,null,"x\u0041\n"]}'::jsonb
SELECT '1.0'::jsonb = '1'::jsonb, '{"a":1}'::jsonb = '{"a": 1}', '"a"'::jsonb <> '"b"'
SELECT '1e2'::jsonb, '-0'::jsonb, '"\u00e4\/"'::jsonb, '{}'::jsonb, '[]'::jsonb, ' { "a" : 1 } '::json
SELECT '[1]'::json = '[1]'::json
SELECT '10.0.0.2'::inet > '10.0.0.10'::inet, '10.0.0.2'::inet < '10.0.0.10', '10.0.0.1'::inet = '10.0.0.1/32'
SELECT x FROM (VALUES ('10.0.0.10'::inet), ('10.0.0.2'::inet), ('::1'::inet), ('10.0.0.0/8'::inet)) v(x) ORDER BY x LIMIT 2
SELECT x, row_number() OVER (ORDER BY x) FROM (VALUES ('10.0.0.10'::inet), ('10.0.0.2'::inet)) v(x)
SELECT max(x) FROM (VALUES ('10.0.0.10'::inet), ('10.0.0.2'::inet)) v(x)
SELECT '10.0.0.5'::inet BETWEEN '10.0.0.2' AND '10.0.0.10', '10.0.0.0/24'::cidr < '10.0.0.0/25'::cidr
SELECT host('10.0.0.1/24'::inet), masklen('10.0.0.1/24'::inet), family('::1'::inet)
SELECT '10.0.0.1'::inet = 'bad'
-- Words and their places.
SELECT NULL ISNULL, 1 ISNULL, 1 NOTNULL
SELECT 1 AS isnull
SELECT x FROM (VALUES (1),(NULL)) v(x) WHERE x ISNULL OR x NOTNULL
SELECT 'a' 'b'
SELECT 'a' COLLATE "nosuch"
SELECT 0x10
SELECT 1_000
SELECT 1a
VALUES ('a'::text), ('b')
VALUES (1, 'a'::varchar), (2, NULL)
SELECT x'1f'
SELECT sum(x::int), sum(x::bigint) FROM (VALUES (1),(2)) v(x)
SELECT count(*)*100.0/sum(count(*)) OVER () AS p FROM (VALUES (1),(1),(2)) v(x) GROUP BY x ORDER BY 1
SELECT upper(x) AS x, count(*) FROM (VALUES ('a'),('A')) v(x) GROUP BY x
-- Moments of now, words without parentheses.
SELECT current_timestamp(3) IS NULL, localtimestamp(0) IS NULL, localtime IS NULL, localtime(0) < '25:00'::interval::time
SELECT now(3)
SELECT current_schema IS NULL, current_role IS NULL, current_catalog IS NULL
TABLE subclusters
SELECT 1 || 2
SELECT * FROM (VALUES (1), (2, 3)) v
SELECT * FROM (SELECT 1) t(a, b)
SELECT split_part('a,b', ',', 0)
SELECT power(0, -1)
SELECT abs(-9223372036854775808)
SELECT substring(1)
SELECT U&'\0041'
SELECT 1 FROM nodes WHERE 1
SELECT NOT 1
SELECT (row(1,'a')).f2
SELECT * FROM nodes n, LATERAL (SELECT n.node_id+1 AS c) x WHERE false
SELECT n.node_name, x.name FROM nodes n LEFT JOIN LATERAL (SELECT a.name FROM network_addresses a WHERE a.node = n.node_name ORDER BY a.name LIMIT 1) x ON true
SELECT * FROM (VALUES (2)) a(x), LATERAL unnest(array[1,2]) u
SELECT * FROM (VALUES (2)) a(x) CROSS JOIN LATERAL generate_series(1,2) g
SELECT pg_typeof(1), pg_typeof('a'::text), pg_typeof(1.5), pg_typeof(now())
SELECT * FROM generate_series(timestamp '2024-01-01', timestamp '2024-01-03', interval '1 day')
SELECT sum(x::int), sum(x::bigint), avg(x::int), count(x::text) FROM (VALUES (1),(2)) v(x)
SELECT 'a'::int

-- LATERAL and functions in FROM of columns before them.
SELECT a.x, g FROM (SELECT 2::int AS x UNION ALL SELECT 3::int) a, generate_series(1, a.x) g
SELECT * FROM (SELECT 2::int AS x) a CROSS JOIN LATERAL generate_series(1,a.x) g
SELECT a.x, u.v FROM (SELECT ARRAY['p','q'] AS x) a LEFT JOIN LATERAL unnest(a.x) u(v) ON true
SELECT a.x, u.v, u.n FROM (VALUES (ARRAY['p','q'])) a(x), unnest(a.x) WITH ORDINALITY u(v, n)
SELECT n.node_name, x.c FROM nodes n, LATERAL (SELECT n.node_id + 1 AS c) x
SELECT n.node_name, x.name, x.port FROM nodes n LEFT JOIN LATERAL (SELECT a.name, a.port FROM network_addresses a WHERE a.node = n.node_name ORDER BY a.port DESC, a.name LIMIT 1) x ON true
SELECT n.node_name, x.c FROM nodes n CROSS JOIN LATERAL (SELECT count(*) AS c FROM network_addresses a WHERE a.node < n.node_name) x
SELECT n.node_name, x.name FROM nodes n JOIN LATERAL (SELECT a.name FROM network_addresses a WHERE a.node >= n.node_name ORDER BY 1 LIMIT 2) x ON x.name <> 'a2'
SELECT a.x, b.y, c.z FROM (SELECT 2::int AS x) a, LATERAL (SELECT a.x * 10 AS y) b, LATERAL (SELECT (a.x + b.y)::int AS z LIMIT 1) c
SELECT * FROM generate_series(timestamp '2024-01-01', timestamp '2024-01-03', interval '1 day')

-- Lengths and digits of types.
SELECT 'abc'::varchar(3), 1.5::numeric(5,2), now()::timestamp(0) IS NULL, '10:00'::time(3), 'abc'::character varying(7)
SELECT 'a'::char(1), 'a'::char, 'a'::"char", 5::numeric(3), '5'::decimal(4,1), 5::dec(4,1)
SELECT x FROM (SELECT 'abc'::varchar(3) AS x) t
SELECT coalesce('abc'::varchar(3), 'de'::varchar(3)), greatest('a'::varchar(3), 'b'::varchar(3))
SELECT CASE WHEN true THEN 'abc'::varchar(3) ELSE 'x'::varchar(3) END, coalesce(node_name, 'x') FROM nodes
SELECT 'abc'::varchar(3) UNION ALL SELECT 'de'::varchar(3)
SELECT (SELECT 'abc'::varchar(3)), ARRAY['abc'::varchar(3)]
SELECT '1 day 02:03:04.5678'::interval(2), '2024-01-01'::timestamptz(2), timestamp(2) '2024-01-01 00:00:00.123'
SELECT 1.5::numeric(5,2) + 1, 1.5::numeric(5,2) * 1.5::numeric(5,2), max(1.5::numeric(5,2)), lower('A'::varchar(3))
SELECT DISTINCT node_name::varchar(4) AS n FROM nodes ORDER BY 1
SELECT x FROM (VALUES ('a'::varchar(2)), ('b'::varchar(2))) v(x)

SELECT interval '1 day 02:03:04.5678'::interval(2), '1 day 02:03:04.5678'::interval(0)

-- Networks, and what else clients ask.
SELECT inet '10.0.0.1' << inet '10.0.0.0/8', inet '10.0.0.1' <<= '10.0.0.1', inet '10.0.0.0/8' >> '10.0.0.1', inet '10.0.0.0/8' >>= inet '10.0.0.0/8'
SELECT inet '10.0.0.0/8' << '10.0.0.0/8', inet '::1' << '::/0', inet '10.0.0.1' <<= '::/0', '10.0.0.0/8' >> cidr '10.1.0.0/16', NULL::inet << '10.0.0.0/8'
SELECT host(inet '10.0.0.1/8'), masklen(inet '10.0.0.1/8'), family(inet '::1'), inet '10.0.0.2' > '10.0.0.10'
SELECT 2 BETWEEN SYMMETRIC 3 AND 1, 2 NOT BETWEEN SYMMETRIC 3 AND 1, 4 BETWEEN SYMMETRIC 3 AND 1
SELECT ~5, 1 << 2, 8 >> 1, 5 & 3, 5 | 3, 5 # 3, ~5::int8, - ~2
SELECT current_user IS NULL, session_user IS NULL, current_role = current_user, current_catalog = current_database()
SELECT txid_current() > 0, inet_server_port() > 0, inet_client_port() > 0, inet_client_addr() <<= '127.0.0.0/8', inet_server_addr()
SELECT CASE x WHEN 1 THEN (SELECT count(*) FROM nodes WHERE node_id > x) ELSE 0 END FROM (VALUES (1),(2)) v(x)
SELECT CASE WHEN x > 1 THEN (SELECT node_name FROM nodes WHERE x > 5) END FROM (VALUES (1),(2)) v(x)
TABLE subclusters

-- Places of expressions among groups.
SELECT upper(x), count(*) FROM (VALUES ('p'),('q')) v(x) GROUP BY x ORDER BY 1
SELECT x + 1, count(*) FROM (VALUES (1),(2)) v(x) GROUP BY x ORDER BY 1 DESC
SELECT subcluster_name || ' (' || count(*) || ')' FROM nodes GROUP BY subcluster_name ORDER BY 1

-- Columns of VALUES that name their types in part.
VALUES (timestamp '2024-07-05'),(NULL)
VALUES (date '2024-01-01'),(timestamp '2024-01-02')
VALUES (true),('f')
VALUES (date '2024-01-01'),('2024-01-02')
SELECT sum(x) FROM (VALUES (0.1::float8),(0.2)) v(x)

-- Exact numbers beside others.
SELECT CASE WHEN true THEN 0.1::float8 ELSE 1.5 END, coalesce(NULL::float8, 1.5), greatest(1.5, 2::float8)
SELECT 0.1::float8 UNION ALL SELECT 1.5
SELECT CAST(16777217 AS float), 1.5::float(24), 0.1::float(53)

-- Values as parts of texts and of JSON.
SELECT interval '1 day' || 'x', 'a' || true, '10.0.0.1'::inet || 'x', 1 || 'a', 1.5 || 'a', timestamp '2024-01-01' || 'x'
SELECT format('%s %s', timestamp '2024-01-01', true)
SELECT json_build_object('c', interval '1 day', 'e', timestamp '2024-01-01', 'f', date '2024-01-01')

-- An order within is kept.
SELECT ARRAY(SELECT x FROM (VALUES (1),(3),(2)) v(x) ORDER BY 1 DESC)
SELECT string_agg(x, ',') FROM (SELECT x FROM (VALUES ('a'),('c'),('b')) v(x) ORDER BY x DESC) t

-- Arrays without elements, lengths below nothing.
SELECT array_length('{}'::text[], 1), array_length('{1,2}'::int[], 1), array_ndims('{}'::int[])
SELECT lpad('abc', x), rpad('abc', x) FROM (VALUES (-1), (2), (4)) v(x)
SELECT substring('abcd' from 'b.'), substring('abcd' from 'x')
SELECT age(timestamp '2000-01-01') > interval '20 years'

-- Chains as tools write them.
SELECT x FROM (VALUES (1),(7),(NULL)) v(x) WHERE x = 1 OR x = 2 OR x = 3 OR x = 4 OR x = 5 OR x = 6 OR x = 7 OR x = 8 OR x = 9
SELECT x FROM (VALUES (1),(7),(NULL)) v(x) WHERE x > 1 OR x = 2 OR x = 3 OR x = 4 OR x = 5 OR x = 6 OR x = 12 OR x = 8 OR x = 9
SELECT x FROM (VALUES (1),(12)) v(x) WHERE x > 1 AND x > 2 AND x > 3 AND x > 4 AND x > 5 AND x > 6 AND x > 7 AND x > 8 AND x <> 9

-- LIKE.
SELECT 'abc' ~~ 'a%', 'abc' !~~* 'A%', 'a%c' LIKE 'a\%c', 'a\c' LIKE 'a\\c', 'abc' LIKE 'a' || '%'
