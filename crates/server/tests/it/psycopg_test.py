"""What scripts that use psycopg do, against the server that the PG* variables name."""

import unittest

import psycopg
from psycopg.pq import TransactionStatus


class Psycopg(unittest.TestCase):
    def setUp(self):
        self.connection = psycopg.connect("")
        self.addCleanup(self.connection.close)

    def status(self):
        return self.connection.info.transaction_status

    def test_a_transaction_is_opened_and_undone(self):
        self.assertEqual(self.status(), TransactionStatus.IDLE)
        self.connection.execute("CREATE SUBCLUSTER undone")
        self.assertEqual(self.status(), TransactionStatus.INTRANS)
        self.connection.rollback()
        self.assertEqual(self.status(), TransactionStatus.IDLE)
        found = self.connection.execute("SELECT 1 FROM subclusters WHERE subcluster_name = 'undone'").fetchall()
        self.assertEqual(found, [])

    def test_parameters_are_bound_as_text_and_binary(self):
        for binary in (False, True):
            with self.connection.cursor(binary=binary) as cursor:
                cursor.execute(
                    "SELECT node_name, node_state FROM nodes WHERE node_name = %s AND node_id > %s", ("node01", 0)
                )
                self.assertEqual(cursor.fetchall(), [("node01", "UP")])
                self.assertEqual([column.name for column in cursor.description], ["node_name", "node_state"])

    def test_functions_in_from_take_parameters(self):
        for prepare in (None, True):
            for _ in range(2):
                rows = self.connection.execute(
                    "SELECT stage, outcome FROM switchyard.explain_route(%s, %s)", ("10.9.9.9", None), prepare=prepare
                ).fetchall()
                self.assertIn(("connection", "stay"), rows)
                rows = self.connection.execute(
                    "SELECT auth_name FROM switchyard.test_authentication(address => %s, tls => %s, \"user\" => %s)",
                    ("127.0.0.1", False, "dbadmin"), prepare=prepare,
                ).fetchall()
                self.assertGreater(len(rows), 0)
                row = self.connection.execute(
                    "SELECT count(*) > 0 FROM switchyard.catalog_at(%s)", (1,), prepare=prepare
                ).fetchone()
                self.assertEqual(row, (True,))
        with self.assertRaises(psycopg.errors.InvalidParameterValue):
            self.connection.execute("SELECT * FROM explain_route(%s)", ("no address",))

    def test_texts_are_in_the_client_s_encoding(self):
        for encoding, text in (("LATIN1", "h\u00e9"), ("WIN1252", "\u20ac \u017d")):
            with psycopg.connect("", client_encoding=encoding, autocommit=True) as connection:
                self.assertEqual(connection.info.parameter_status("client_encoding"), encoding)
                self.assertEqual(connection.execute("SHOW client_encoding").fetchone(), (encoding,))
                for binary in (False, True):
                    with connection.cursor(binary=binary) as cursor:
                        cursor.execute(f"SELECT '{text}' AS \"{text}\", length('{text}'), %s::text, length(%s)",
                                       (text, text))
                        self.assertEqual(cursor.fetchone(), (text, len(text), text, len(text)))
                        self.assertEqual(cursor.description[0].name, text)
                with connection.cursor() as cursor, cursor.copy(f"COPY (SELECT '{text}') TO STDOUT") as copy:
                    self.assertEqual(b"".join(copy), (text + "\n").encode("cp1252"))
                with self.assertRaises(psycopg.errors.UndefinedColumn) as caught:
                    connection.execute(f'SELECT "{text}" FROM nodes')
                self.assertIn(text, caught.exception.diag.message_primary)
                with self.assertRaises(psycopg.errors.UntranslatableCharacter):
                    connection.execute("SELECT U&'\\4e2d'")
                connection.execute("SET client_encoding TO 'UTF8'")
                self.assertEqual(connection.execute("SELECT U&'\\4e2d'").fetchone(), ("\u4e2d",))
        with self.assertRaises(psycopg.errors.InvalidParameterValue) as caught:
            self.connection.execute("SET client_encoding TO 'EUC_JP'")
        self.assertIn("LATIN1", caught.exception.diag.message_hint)

    def test_a_statement_is_prepared_after_some_uses(self):
        for number in range(10):
            row = self.connection.execute("SELECT %s::int8 + 1", (number,), prepare=True).fetchone()
            self.assertEqual(row, (number + 1,))

    def test_an_error_has_its_code_and_place(self):
        with self.assertRaises(psycopg.errors.SyntaxError) as caught:
            self.connection.execute("CREATE ROUTING RULE r ROUTTE '10.0.0.0/8' TO g")
        self.assertEqual(caught.exception.sqlstate, "42601")
        self.assertEqual(caught.exception.diag.statement_position, "23")
        self.assertEqual(self.status(), TransactionStatus.INERROR)
        with self.assertRaises(psycopg.errors.InFailedSqlTransaction):
            self.connection.execute("SELECT 1")
        self.connection.rollback()
        self.assertEqual(self.connection.execute("SELECT 1").fetchone(), (1,))

    def test_a_refusal_has_its_code(self):
        self.connection.autocommit = True
        with self.assertRaises(psycopg.errors.UndefinedObject):
            self.connection.execute("CREATE NODE n WITH '10.0.0.1' SUBCLUSTER missing")
        with self.assertRaises(psycopg.errors.UndefinedTable):
            self.connection.execute("SELECT * FROM missing")
        with self.assertRaises(psycopg.errors.UndefinedColumn):
            self.connection.execute("SELECT missing FROM nodes")

    def test_a_named_cursor_reads_in_portions(self):
        text = "SELECT column_name FROM switchyard.system_columns WHERE table_name = %s ORDER BY ordinal_position"
        every = self.connection.execute(text, ("sessions",)).fetchall()
        for binary in (False, True):
            with self.connection.cursor("portions", binary=binary) as cursor:
                cursor.itersize = 3
                cursor.execute(text, ("sessions",))
                self.assertEqual(cursor.fetchmany(2), every[:2])
                self.assertEqual(list(cursor), every[2:])
        with self.connection.cursor("scrolls", scrollable=True) as cursor:
            cursor.execute(text, ("sessions",))
            cursor.scroll(4)
            self.assertEqual(cursor.fetchone(), every[4])
            cursor.scroll(1, mode="absolute")
            self.assertEqual(cursor.fetchone(), every[1])
        with self.connection.cursor("forward", scrollable=False) as cursor:
            cursor.execute(text, ("sessions",))
            cursor.fetchmany(5)
            with self.assertRaises(psycopg.errors.ObjectNotInPrerequisiteState):
                cursor.scroll(-1)
        self.connection.rollback()
        with self.connection.cursor("held", withhold=True) as cursor:
            cursor.execute(text, ("sessions",))
            self.assertEqual(cursor.fetchone(), every[0])
            self.connection.commit()
            self.assertEqual(cursor.fetchall(), every[1:])
            held = self.connection.execute("SELECT name FROM pg_cursors WHERE is_holdable").fetchall()
            self.assertEqual(held, [("held",)])

    def test_notifications_arrive(self):
        self.connection.autocommit = True
        self.connection.execute("LISTEN news")
        with psycopg.connect("", autocommit=True) as other:
            other.execute("NOTIFY news, 'hello'")
        said = next(self.connection.notifies(timeout=30, stop_after=1))
        self.assertEqual((said.channel, said.payload), ("news", "hello"))

    def test_savepoints_nest(self):
        with self.connection.transaction():
            self.connection.execute("CREATE SUBCLUSTER kept")
            with self.assertRaises(ZeroDivisionError), self.connection.transaction():
                self.connection.execute("CREATE SUBCLUSTER lost")
                raise ZeroDivisionError
        rows = self.connection.execute("SELECT subcluster_name FROM subclusters WHERE NOT is_default").fetchall()
        self.assertEqual(rows, [("kept",)])

    def test_several_statements_in_one_string(self):
        cursor = self.connection.execute("SELECT 1; SELECT 2")
        self.assertEqual(cursor.fetchone(), (1,))
        self.assertTrue(cursor.nextset())
        self.assertEqual(cursor.fetchone(), (2,))

    def test_a_pipeline_is_answered_in_order_and_undone_as_one(self):
        self.connection.autocommit = True
        with self.connection.pipeline():
            first = self.connection.execute("SELECT node_name FROM nodes")
            second = self.connection.execute("SELECT %s::int8", (2,))
            self.assertEqual((first.fetchall(), second.fetchall()), ([("node01",)], [(2,)]))
        with self.assertRaises(psycopg.errors.UndefinedTable), self.connection.pipeline():
            self.connection.execute("CREATE SUBCLUSTER undone")
            self.connection.execute("SELECT * FROM missing")
        found = self.connection.execute("SELECT 1 FROM subclusters WHERE subcluster_name = 'undone'").fetchall()
        self.assertEqual(found, [])

    def test_rows_are_copied(self):
        for options in ("", "(FORMAT binary)"):
            with self.connection.cursor().copy(f"COPY nodes (node_name, node_id) TO STDOUT {options}") as copy:
                copy.set_types(["varchar", "int8"])
                rows = list(copy.rows())
            self.assertEqual([name for name, _ in rows], ["node01"])

    def test_a_notice_reaches_its_handler(self):
        heard = []
        self.connection.add_notice_handler(lambda notice: heard.append(notice.message_primary))
        self.connection.execute("DROP SUBCLUSTER IF EXISTS missing")
        self.assertEqual(heard, ["Nothing was dropped"])


if __name__ == "__main__":
    unittest.main()
