-- The caret stands where PostgreSQL puts it.
SELECT 'a'::int
SELECT  'bad'::inet
SELECT CAST('x' AS date)
SELECT node_name FROM nodes WHERE node_id = 'x'
SELECT $1
SELECT node_name, count(*) FROM nodes
SELECT node_name, count(*) FROM nodes GROUP BY port
SELECT node_name FROM nodes GROUP BY y
SELECT max(node_name), port FROM network_addresses
SELECT  (SELECT 1, 2)
SELECT 1 UNION SELECT 1, 2
SELECT 1, 2 UNION ALL SELECT 3
SELECT 1 WHERE 'x' = 1
SELECT 'x' + 1
SELECT 1 + 'x'
SELECT date 'x'
SELECT timestamp '2024-13-01'
SELECT interval 'x'
SELECT 'x'::interval
SELECT true AND 'x'
SELECT 1 WHERE 1
SELECT NOT 1
SELECT CASE WHEN 1 THEN 2 END
SELECT CASE 1 WHEN 'a' THEN 2 END
SELECT CASE WHEN true THEN 1 ELSE 'x' END
SELECT coalesce('x', 1)
SELECT greatest(1, 'x')
SELECT nullif(1, 'x')
SELECT 1 IN (1, 'x')
SELECT 1 BETWEEN 'x' AND 2
SELECT ARRAY[1, 'x']
SELECT ARRAY[1, 'x'::text]
VALUES (1), ('x')
SELECT nosuch FROM nodes
SELECT n.nosuch FROM nodes n
SELECT x.node_name FROM nodes n
SELECT * FROM nosuch
SELECT nosuch(1)
SELECT abs('x'::text)
SELECT upper(1)
SELECT 1 || 2
SELECT true + 1
SELECT 'a'::text + 1
SELECT -'a'::text
SELECT 1::nosuch
SELECT CAST(1 AS nosuch)
SELECT 1::date
SELECT true::date
SELECT now()::int
SELECT sum(node_name) FROM nodes
SELECT count(*) FROM nodes WHERE count(*) > 1
SELECT node_name FROM nodes ORDER BY 3
SELECT node_name FROM nodes GROUP BY 3
SELECT node_name FROM nodes ORDER BY nosuch
SELECT node_name FROM nodes LIMIT 'x'
SELECT node_name FROM nodes LIMIT -1
SELECT node_name FROM nodes OFFSET -1
SELECT node_name FROM nodes n, network_addresses a WHERE node_name = name AND port = 'x'
SELECT name FROM network_addresses WHERE port = 'x'
SELECT name FROM network_addresses WHERE port > 5 AND port IN ('1', 'b')
SELECT name FROM network_addresses a JOIN nodes n USING (nosuch)
SELECT name FROM network_addresses a JOIN nodes n ON a.nosuch = n.node_name
SELECT name FROM network_addresses a JOIN nodes n ON a.port
SELECT port FROM network_addresses a, network_addresses b
SELECT 1/0
SELECT 1.0/0
SELECT 1 + 9223372036854775808::bigint
SELECT 99999999999::int
SELECT '99999999999'::int
SELECT 2147483647 + 1
SELECT 1 WHERE 1/0 = 1
SELECT 'x'::boolean
SELECT '{1,2'::int[]
SELECT '{1,x}'::int[]
SELECT '{1'::json
SELECT 1 FROM nodes WHERE node_name = 1
SELECT substring('abc' from 0 for -1)
SELECT to_date('x', 'YYYY')
SELECT 'abc' LIKE 1
SELECT extract(foo from now())
SELECT date_trunc('foo', now())
SELECT row_number() FROM nodes
SELECT rank() OVER (ORDER BY nosuch) FROM nodes
SELECT (SELECT node_name FROM nodes)
SELECT 1 IN (SELECT 1, 2)
SELECT EXISTS (SELECT nosuch FROM nodes)
WITH a AS (SELECT 1) SELECT nosuch FROM a
WITH a AS (SELECT 1), a AS (SELECT 2) SELECT 1
SELECT * FROM (SELECT 1) t(a, b)
SELECT * FROM (SELECT 1 AS a, 2 AS a) t WHERE a = 1
SELECT 1 AS a FROM nodes WHERE a = 1
SELECT count(nosuch) FROM nodes
SELECT count(DISTINCT) FROM nodes
SELECT max(1, 2)
SELECT 'a' 'b'
SELEC 1
SELECT 1 FROM
SELECT (1
SELECT 1 UNION SELECT 'x'
SELECT 1 UNION SELECT now()
SELECT 'x' UNION SELECT 1
SELECT 1 EXCEPT SELECT 1, 2
SELECT 'a' COLLATE "nosuch"
SELECT * FROM generate_series(1, 'x')
SELECT * FROM nosuch(1)
SELECT sum(1) OVER (PARTITION BY nosuch)
SELECT node_name, sum(count(*)) FROM nodes
SELECT node_name FROM nodes GROUP BY node_name HAVING port = 1
SELECT port + 1 FROM network_addresses GROUP BY port + 2
SELECT n.* FROM network_addresses
SELECT 1 ORDER BY 'x'::int
SELECT cast('a' as numeric(5,2))
SELECT 12345.678::numeric(5,2)
SELECT 'x'::varchar::int
SELECT length(5)
SELECT lower(now())
SELECT now() - 'x'
SELECT now() + 1
SELECT now() > 'x'
SELECT inet '10.0.0.1' = 'x'
SELECT 1::int2 + 'x'
SELECT  $1::int
SELECT 5 WHERE node_name IS NULL
SELECT 3 = true
SELECT 'x' = true
SELECT ('a' || 'b')::int
SELECT 'a'::int FROM nodes
SELECT 1, 'a'::int, 'a'
SELECT 'a', 'a'::int
SELECT 'a' AS x, node_name FROM nodes WHERE node_id = 'a'
SELECT x FROM (VALUES (1)) v(x) WHERE x = 'a'
SELECT x FROM (VALUES ('a')) v(x) WHERE x = 1
SELECT '1'::int, '1'::inet, '1'::date
SELECT node_name FROM nodes WHERE node_name = 'x' AND node_id = 'x'
SELECT 1 WHERE NOT (2)
SELECT CAST(1 AS date)
SELECT  cast(true as date)
SELECT 1 NOT IN (SELECT 1, 2)
SELECT (1), (SELECT 1, 2)
SELECT 'a' ILIKE 1
SELECT 'ä', 'x'::int
SELECT 'ä' || 'ö', nosuch
SELECT foo.lower('a')
SELECT count() FROM nodes
SELECT * FROM (SELECT 1)
SELECT * FROM (VALUES (1))
SELECT arrow_typeof(1)
SELECT nvl(1, 2)
SELECT 'a'::varchar(0)
