CREATE TABLE t (a int, b text)

-- copy: 1\tone\n2\ttwo\n3\t\\N\n
COPY t FROM STDIN

-- copy: 4,"four, five"\n
COPY t FROM STDIN (FORMAT csv)

-- copy: no number\tx\n
COPY t FROM STDIN

COPY t TO STDOUT

COPY (SELECT * FROM t ORDER BY a) TO STDOUT (FORMAT csv, HEADER)

COPY (SELECT a FROM t ORDER BY a) TO STDOUT (FORMAT binary)

COPY (SELECT g, repeat('x', 200) FROM generate_series(1, 5000) g) TO STDOUT

-- copy: 7\tseven\n
COPY t FROM STDIN; SELECT count(*) FROM t

SELECT * FROM t ORDER BY a

COPY nowhere FROM STDIN

COPY t FROM '/nowhere/at/all'
