"""What scripts that use psycopg2 do, against the server that the PG* variables name."""

import io
import unittest

import psycopg2
import psycopg2.extras
from psycopg2 import errors, extensions


class Psycopg2(unittest.TestCase):
    def setUp(self):
        self.connection = psycopg2.connect("")
        self.addCleanup(self.connection.close)
        self.cursor = self.connection.cursor()

    def one(self, sql, *parameters):
        self.cursor.execute(sql, parameters or None)
        return self.cursor.fetchone()

    def test_the_connection_tells_of_the_server(self):
        self.assertEqual(self.connection.server_version // 10000, 15)
        self.assertEqual(self.connection.encoding, "UTF8")
        self.assertEqual(self.connection.get_parameter_status("standard_conforming_strings"), "on")
        self.assertEqual(self.connection.get_parameter_status("integer_datetimes"), "on")
        self.assertEqual(self.one("SELECT pg_backend_pid()"), (self.connection.get_backend_pid(),))

    def test_parameters_are_written_into_the_statement(self):
        found = self.one(
            "SELECT node_name, %s, %s, %s, %s::text[], %s FROM nodes WHERE node_name = ANY(%s) AND node_id > %s",
            "it's", None, True, ["a", 'b"c'], 1.5, ["node01", "other"], 0,
        )
        self.assertEqual(found[:5], ("node01", "it's", None, True, ["a", 'b"c']))
        self.assertEqual(float(found[5]), 1.5)
        self.assertEqual([column.name for column in self.cursor.description][0], "node_name")
        self.assertEqual(self.cursor.description[0].type_code, 1043)

    def test_rows_are_read_as_dictionaries_and_tuples_with_names(self):
        cursor = self.connection.cursor(cursor_factory=psycopg2.extras.RealDictCursor)
        cursor.execute("SELECT node_name, node_state FROM nodes")
        self.assertEqual(cursor.fetchall(), [{"node_name": "node01", "node_state": "UP"}])
        cursor = self.connection.cursor(cursor_factory=psycopg2.extras.NamedTupleCursor)
        cursor.execute("SELECT node_name, node_state FROM nodes")
        self.assertEqual(cursor.fetchone().node_state, "UP")

    def test_types_are_read(self):
        row = self.one(
            "SELECT 1::int2, 2::int8, 1.5::float8, true, 'x'::text, DATE '2026-01-02', TIMESTAMP '2026-01-02 03:04:05',"
            " now(), ARRAY['a', 'b'], ARRAY[1, 2], NULL"
        )
        self.assertEqual(row[:5], (1, 2, 1.5, True, "x"))
        self.assertEqual((str(row[5]), str(row[6])), ("2026-01-02", "2026-01-02 03:04:05"))
        self.assertIsNotNone(row[7].tzinfo)
        self.assertEqual(row[8:], (["a", "b"], [1, 2], None))

    def test_a_transaction_is_opened_and_undone(self):
        self.assertEqual(self.connection.info.transaction_status, extensions.TRANSACTION_STATUS_IDLE)
        with self.assertRaises(ZeroDivisionError), self.connection:
            self.cursor.execute("CREATE SUBCLUSTER undone")
            self.assertEqual(self.connection.info.transaction_status, extensions.TRANSACTION_STATUS_INTRANS)
            raise ZeroDivisionError
        self.assertEqual(self.one("SELECT count(*) FROM subclusters WHERE NOT is_default"), (0,))
        self.connection.rollback()
        with self.connection:
            self.cursor.execute("CREATE SUBCLUSTER kept")
        self.assertEqual(self.one("SELECT count(*) FROM subclusters WHERE NOT is_default"), (1,))
        self.connection.rollback()
        self.connection.autocommit = True
        self.cursor.execute("DROP SUBCLUSTER kept")

    def test_a_session_is_set_and_reset(self):
        self.connection.set_session(isolation_level="SERIALIZABLE", readonly=True, deferrable=True)
        self.assertEqual(self.one("SHOW transaction_isolation"), ("serializable",))
        self.connection.reset()
        self.connection.set_session(isolation_level="DEFAULT", readonly=False, deferrable=False, autocommit=True)
        self.connection.set_client_encoding("UTF8")
        self.cursor.execute("SET application_name TO %s", ("changed",))
        self.connection.reset()
        self.assertEqual(self.one("SHOW application_name"), ("",))

    def test_errors_have_their_code_and_place(self):
        with self.assertRaises(errors.UndefinedTable) as caught:
            self.one("SELECT * FROM missing")
        self.assertEqual(caught.exception.pgcode, "42P01")
        self.assertEqual(caught.exception.diag.statement_position, "15")
        with self.assertRaises(errors.InFailedSqlTransaction):
            self.one("SELECT 1")
        self.connection.rollback()
        with self.assertRaises(errors.SyntaxError):
            self.one("SELEC 1")

    def test_rows_are_copied(self):
        into = io.StringIO()
        self.cursor.copy_expert("COPY (SELECT node_name, node_state FROM nodes) TO STDOUT WITH CSV HEADER", into)
        self.assertEqual(into.getvalue(), "node_name,node_state\nnode01,UP\n")

    def test_a_named_cursor_reads_in_portions(self):
        self.cursor.execute("SELECT count(*) FROM pg_attribute")
        (count,) = self.cursor.fetchone()
        with self.connection.cursor("portions") as cursor:
            cursor.itersize = 100
            cursor.execute("SELECT attname, attnum FROM pg_attribute WHERE attnum > %s", (0,))
            self.assertIsNone(cursor.description)
            self.assertEqual(len(cursor.fetchmany(7)), 7)
            self.assertEqual([column.name for column in cursor.description], ["attname", "attnum"])
            # Another cursor of the same connection does not disturb it.
            self.cursor.execute("SELECT name, is_scrollable FROM pg_cursors")
            self.assertEqual(self.cursor.fetchall(), [("portions", False)])
            self.assertEqual(7 + sum(1 for _ in cursor), count)
            self.assertEqual((cursor.fetchone(), cursor.fetchall()), (None, []))
        self.assertEqual(self.one("SELECT count(*) FROM pg_cursors"), (0,))

    def test_a_named_cursor_scrolls(self):
        with self.connection.cursor("back and \"forth\"", scrollable=True) as cursor:
            cursor.execute("SELECT * FROM generate_series(1, 10)")
            cursor.scroll(4)
            self.assertEqual(cursor.fetchone(), (5,))
            cursor.scroll(-3)
            self.assertEqual(cursor.fetchmany(2), [(3,), (4,)])
            cursor.scroll(9, mode="absolute")
            self.assertEqual(cursor.fetchall(), [(10,)])
        cursor = self.connection.cursor("forward", scrollable=False)
        cursor.execute("SELECT * FROM generate_series(1, 10)")
        self.assertEqual(len(cursor.fetchmany(3)), 3)
        with self.assertRaises(errors.ObjectNotInPrerequisiteState):
            cursor.scroll(-1)
        self.connection.rollback()

    def test_a_named_cursor_can_outlive_its_transaction(self):
        cursor = self.connection.cursor("held", withhold=True)
        cursor.execute("SELECT * FROM generate_series(1, 10)")
        self.assertEqual(cursor.fetchone(), (1,))
        self.connection.commit()
        self.assertEqual(cursor.fetchmany(2), [(2,), (3,)])
        self.connection.commit()
        self.assertEqual(len(cursor.fetchall()), 7)
        cursor.close()
        ended = self.connection.cursor("ended")
        ended.execute("SELECT * FROM generate_series(1, 10)")
        self.connection.commit()
        # The driver knows without asking.
        with self.assertRaises(psycopg2.ProgrammingError):
            ended.fetchone()
        self.connection.rollback()
        self.connection.autocommit = True
        with self.connection.cursor("alone", withhold=True) as cursor:
            cursor.execute("SELECT * FROM generate_series(1, 3)")
            self.assertEqual(cursor.fetchall(), [(1,), (2,), (3,)])
        with self.assertRaises(psycopg2.ProgrammingError):
            self.connection.cursor("no transaction").execute("SELECT 1")

    def test_notices_are_kept(self):
        self.cursor.execute("DROP SUBCLUSTER IF EXISTS missing")
        self.assertIn("Nothing was dropped", self.connection.notices[-1])

    def test_types_are_looked_up(self):
        self.assertEqual(psycopg2.extras.HstoreAdapter.get_oids(self.connection), ((), ()))
        with self.assertRaises(psycopg2.ProgrammingError):
            psycopg2.extras.register_composite("missing", self.connection)
        self.connection.rollback()
        psycopg2.extras.register_ipaddress(self.connection)
        psycopg2.extras.register_default_json(self.connection)


if __name__ == "__main__":
    unittest.main()
