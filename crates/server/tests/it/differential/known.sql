-- Zeros at the end that a value has more than the shortest of its union are not shown.
SELECT 1 UNION ALL SELECT 2.50

-- What is computed of a union's numbers has as many digits as the longest of them.
SELECT n + 1 FROM (SELECT 1 AS n UNION ALL SELECT 1.5) t

-- Refused here too, with another SQLSTATE: the planner answers before its types are those of PostgreSQL.
SELECT extract(nothing from now())
SELECT sum('a')
SELECT * FROM generate_series(1, 'x')

-- Refused: the planner takes these sums for one.
SELECT sum(1), sum(1.5), avg(1.5), sum(1::float8), avg(2::float8) FROM nodes

-- Refused: a row as a value has no type here.
SELECT n FROM nodes n WHERE false

-- The same values; an array made of a varchar column is called text[], since lists of the planner lose what their items are called.
SELECT array_agg(node_name ORDER BY node_name) FROM nodes
SELECT ARRAY(SELECT node_name FROM nodes ORDER BY node_name)
SELECT node_name, ARRAY(SELECT a.name FROM network_addresses a WHERE a.node = n.node_name) FROM nodes n

-- The same value as text; jsonb is kept as it was written, PostgreSQL writes it anew.
SELECT '{"a":1}'::jsonb

-- The same value, as a double instead of as many digits as PostgreSQL's numeric functions choose.
SELECT power(2, 3), power(2.0, 3)
SELECT stddev(port), variance(port) FROM network_addresses

-- The same value: the working table of a recursive query keeps wide integers.
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 5) SELECT sum(n) FROM t

-- PostgreSQL refuses it; what is behind the first value is never read here.
SELECT coalesce(1, 'x')
