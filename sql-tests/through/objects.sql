PREPARE p (int) AS SELECT $1 * 2 AS twice

EXECUTE p(21)

EXECUTE p('x')

PREPARE p AS SELECT 1

SELECT name, statement, parameter_types::text, from_sql FROM pg_prepared_statements WHERE from_sql

DEALLOCATE p

DEALLOCATE p

DECLARE c CURSOR FOR SELECT 1

BEGIN; DECLARE c CURSOR WITH HOLD FOR SELECT g FROM generate_series(1, 5) g; COMMIT

FETCH 2 FROM c

MOVE 1 FROM c

FETCH ALL FROM c

CLOSE c

CREATE TEMPORARY TABLE temporary (a int)

INSERT INTO temporary VALUES (1) RETURNING a

DISCARD TEMP

SELECT lo_from_bytea(4711, 'large')

SELECT lo_get(4711)

SELECT lo_unlink(4711)

LISTEN channel

NOTIFY other, 'nobody hears'

UNLISTEN *

CREATE FUNCTION f(a int, OUT b int, OUT c text) LANGUAGE sql BEGIN ATOMIC SELECT a + 1, 'x'; END

SELECT * FROM f(1)

SELECT f(1)

CREATE VIEW v AS SELECT 1 AS a

CREATE TABLE IF NOT EXISTS t (a int); CREATE TABLE IF NOT EXISTS t (a int)

DROP TABLE IF EXISTS nowhere

DROP VIEW v

CREATE TYPE mood AS ENUM ('sad', 'happy')

SELECT 'happy'::mood

COMMENT ON TABLE t IS 'a comment'

ALTER TABLE t ADD COLUMN b text DEFAULT 'x'

CREATE INDEX i ON t (a)

REINDEX INDEX i

SELECT * FROM t
