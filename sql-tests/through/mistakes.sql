SELECT 1/0

SELEC 1

SELECT nothing

SELECT * FROM nowhere

SELECT 'a'::int

INSERT INTO nowhere VALUES (1)

SELECT 1; SELECT 1/0; SELECT 2

CREATE TABLE t (a int PRIMARY KEY CHECK (a > 0), b text NOT NULL UNIQUE)

INSERT INTO t VALUES (1, 'one')

INSERT INTO t VALUES (1, 'one')

INSERT INTO t VALUES (-1, 'minus')

INSERT INTO t VALUES (2, NULL)

DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = 'P0004', MESSAGE = 'own', DETAIL = 'more', HINT = 'try', SCHEMA = 's', TABLE = 't', COLUMN = 'c', DATATYPE = 'd', CONSTRAINT = 'k'; END $$

DO $$ BEGIN RAISE NOTICE 'one'; RAISE WARNING 'two'; RAISE INFO 'three'; END $$

SELECT pg_catalog.nothing(1)

SELECT 'not ended

;

-- nothing but a comment

/* a comment */ SELECT 1 /* and /* another */ one */
