-- Zeros at the end that a value has more than the shortest of its union are not shown.
SELECT 1 UNION ALL SELECT 2.50

-- What is computed of a union's numbers has as many digits as the longest of them.
SELECT n + 1 FROM (SELECT 1 AS n UNION ALL SELECT 1.5) t

-- Refused here too, with another SQLSTATE: the planner answers before its types are those of PostgreSQL.
SELECT extract(nothing from now())
SELECT sum('a')

-- Refused: a row as a value has no type here.
SELECT n FROM nodes n WHERE false

-- The same values; an array made of a varchar column is called text[], since lists of the planner lose what their items are called.
SELECT array_agg(node_name ORDER BY node_name) FROM nodes

-- The same value, as a double instead of as many digits as PostgreSQL's numeric functions choose.
SELECT power(2, 3), power(2.0, 3)
SELECT stddev(port), variance(port) FROM network_addresses

-- The same value: the working table of a recursive query keeps wide integers.
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 5) SELECT sum(n) FROM t

-- Refused: the planner would keep the wrong number of equal rows.
SELECT x FROM (VALUES (1),(1),(2)) a(x) EXCEPT ALL SELECT 1
SELECT x FROM (VALUES (1),(1)) a(x) INTERSECT ALL SELECT 1

-- Refused: the planner would take the left side's column for that of both.
SELECT x FROM (VALUES (1),(2)) a(x) FULL JOIN (VALUES (2),(3)) b(x) USING (x)
SELECT x FROM (VALUES (1),(2)) a(x) RIGHT JOIN (VALUES (2),(3)) b(x) USING (x)
SELECT * FROM (VALUES (1),(2)) a(x) NATURAL FULL JOIN (VALUES (2),(3)) b(x)

-- Refused: a row as a value, an array of arrays, bits and characters of a fixed length have no type here.
SELECT (1,2)
SELECT ROW(1,'a')
SELECT ARRAY[[1,2],[3,4]]
SELECT 'abc'::char(5) = 'abc'
SELECT length('abc'::char(5))
SELECT x'1f'

-- Refused: the planner orders by the output column, whose name the query without can need.
SELECT * FROM (SELECT -x AS x FROM (VALUES (1),(2)) v(x) ORDER BY x+0 LIMIT 1) z

-- Refused: decimals have 38 digits here.
SELECT 99999999999999999999999999999999999999 + 1
SELECT 9999999999999999999999999999999999999.9 + 1
SELECT 99999999999999999999999999999999999999 * 10

-- Refused: addresses are texts here, whose largest is another.
SELECT max(x) FROM (VALUES ('10.0.0.10'::inet), ('10.0.0.2'::inet)) v(x)

-- Refused in both, with another SQLSTATE: PostgreSQL calls it an error of its own.
SELECT (row(1,'a')).f2

-- The same names of types, as texts.
SELECT pg_typeof(1), pg_typeof('a'::text), pg_typeof(1.5), pg_typeof(now())

-- The same values; the fields that an interval was written with are not told.
SELECT '1 day'::interval, interval '1' day, interval '0'
