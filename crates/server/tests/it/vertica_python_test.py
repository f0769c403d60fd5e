"""What scripts that use vertica-python do, against the server that the VERTICA_TEST_* variables name."""

import datetime
import decimal
import os
import unittest
import unittest.mock
import warnings

import vertica_python
from dateutil.relativedelta import relativedelta
from vertica_python import errors
from vertica_python.vertica.messages.backend_messages.authentication import Authentication
from vertica_python.vertica.messages.frontend_messages.password import Password

HOST = "127.0.0.1"
PORT = int(os.environ["VERTICA_TEST_PORT"])
USER = os.environ["VERTICA_TEST_USER"]
PASSWORD = os.environ["VERTICA_TEST_PASSWORD"]


def connect(**options):
    given = {"host": HOST, "port": PORT, "user": USER, "password": PASSWORD, "tlsmode": "disable"}
    return vertica_python.connect(**{**given, **options})


class VerticaPython(unittest.TestCase):
    def setUp(self):
        # Nothing is worth a warning that is not expected.
        warnings.simplefilter("ignore", ResourceWarning)
        warnings.simplefilter("error", UserWarning)
        self.addCleanup(warnings.resetwarnings)

    def connect(self, **options):
        connection = connect(**options)
        self.addCleanup(lambda: connection.closed() or connection.close())
        return connection

    def both_ways(self):
        """A cursor with values put into the text, and one that prepares."""
        for prepared in (False, True):
            with self.subTest(prepared=prepared):
                yield prepared, self.connect(use_prepared_statements=prepared).cursor()

    def one(self, cursor, *arguments):
        cursor.execute(*arguments)
        rows = cursor.fetchall()
        self.assertEqual(len(rows), 1, rows)
        return rows[0]

    def test_a_session_is_what_the_client_said(self):
        label = "a test's own"
        cursor = self.connect(session_label=label, database="switchyard").cursor()
        told = "client_label, client_type, client_version, client_os_user_name, client_os_hostname, client_pid"
        for table in ("sessions", "user_sessions", "dc_session_starts"):
            row = self.one(cursor, f"SELECT {told} FROM {table} WHERE session_id = (SELECT session_id FROM current_session)")
            self.assertEqual(row[:3], [label, "vertica-python", vertica_python.__version__], table)
            self.assertTrue(row[3] and row[4], table)
            self.assertEqual(row[5], os.getpid(), table)
        row = self.one(cursor, f"SELECT {told}, client_os, requested_protocol, effective_protocol FROM current_session")
        self.assertEqual(row[:3], [label, "vertica-python", vertica_python.__version__])
        self.assertTrue(row[6])
        self.assertEqual(row[7:], [196624, 196624])
        sent = "SELECT contents FROM dc_client_server_messages WHERE message_type = '^+' AND session_id = (SELECT session_id FROM current_session)"
        cursor.execute(sent + " ORDER BY contents")
        contents = [row[0] for row in cursor.fetchall()]
        self.assertIn("protocol_version: 196624", contents)
        self.assertIn("workload: ", contents)
        self.assertIn(f"client_label: {label}", contents)

    def test_the_server_says_what_it_is(self):
        connection = self.connect()
        self.assertEqual(connection.parameters["protocol_version"], 196624)
        self.assertEqual(connection.parameters["request_complex_types"], "off")
        self.assertEqual(connection.parameters["auto_commit"], "off")
        self.assertEqual(connection.parameters["workload"], "")
        self.assertFalse(connection.complex_types_enabled)

    def test_a_wrong_login_is_refused(self):
        for user, password in ((USER, "wrong"), ("nobody", PASSWORD), (USER, "")):
            with self.assertRaises(errors.ConnectionError) as caught:
                connect(user=user, password=password)
            self.assertIn(f'Authentication failed for username "{user}"', str(caught.exception))
            self.assertIn("Sqlstate: 28000", str(caught.exception))
            self.assertIn("Error Code: 2248", str(caught.exception))
        with self.assertRaises(errors.ConnectionError) as caught:
            connect(database="elsewhere")
        self.assertIn('database "elsewhere" does not exist', str(caught.exception))

    def test_an_expired_password_is_told_so(self):
        cursor = self.connect().cursor()
        cursor.execute("CREATE USER expired IDENTIFIED BY 'once'")
        self.assertEqual(self.one(self.connect(user="expired", password="once").cursor(), "SELECT current_user"), ["expired"])
        cursor.execute("ALTER USER expired PASSWORD EXPIRE")
        with self.assertRaisesRegex(errors.ConnectionError, "The password for user expired has expired"):
            connect(user="expired", password="once")

    def test_load_balancing_is_declined(self):
        with self.assertWarnsRegex(UserWarning, "Load balancing requested but not supported by server"):
            connection = self.connect(connection_load_balance=True)
        self.assertEqual(self.one(connection.cursor(), "SELECT 1"), [1])

    def test_values_of_every_type(self):
        moment = datetime.datetime(2024, 2, 29, 13, 14, 15, 123400)
        wanted = [
            ("true", True),
            ("false", False),
            ("CAST(-7 AS bigint)", -7),
            ("9223372036854775807", 9223372036854775807),
            ("CAST(1.5 AS float8)", 1.5),
            ("CAST('Infinity' AS float8)", float("inf")),
            ("CAST(1e20 AS float8)", 1e20),
            ("CAST('12.50' AS numeric(6,2))", decimal.Decimal("12.50")),
            ("'h\u00e9llo'", "h\u00e9llo"),
            ("CAST(NULL AS varchar)", None),
            ("date '2024-02-29'", moment.date()),
            ("timestamp '2024-02-29 13:14:15.1234'", moment),
            ("timestamptz '2024-02-29 13:14:15.1234+00'", moment.replace(tzinfo=datetime.timezone.utc)),
            ("interval '1 day 2 hours 3 minutes 4.5 seconds'", relativedelta(days=1, hours=2, minutes=3, seconds=4, microseconds=500000)),
            ("interval '-90 minutes'", relativedelta(hours=-1, minutes=-30)),
            ("decode('005cff41', 'hex')", b"\x00\\\xffA"),
            ("ARRAY['a', NULL, 'b\"']", '["a",null,"b\\""]'),
        ]
        for binary in (False, True):
            for prepared in (False, True):
                with self.subTest(binary=binary, prepared=prepared):
                    connection = self.connect(binary_transfer=binary, use_prepared_statements=prepared)
                    cursor = connection.cursor()
                    row = self.one(cursor, "SELECT " + ", ".join(expression for expression, _ in wanted))
                    found = dict(zip((expression for expression, _ in wanted), row))
                    for expression, value in wanted:
                        got = found[expression]
                        if isinstance(got, relativedelta):
                            got, value = got.normalized(), value.normalized()
                        self.assertEqual(got, value, expression)
                    connection.close()

    def test_moments_are_the_same_in_any_zone(self):
        for binary in (False, True):
            connection = self.connect(binary_transfer=binary)
            cursor = connection.cursor()
            cursor.execute("SET TIME ZONE 'America/New_York'")
            cursor.fetchall()
            self.assertEqual(connection.parameters["timezone"], "America/New_York")
            shown = self.one(cursor, "SELECT timestamptz '2024-02-29 12:00:00+00'")[0]
            self.assertEqual(shown, datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.timezone.utc))

    def test_parameters_are_bound(self):
        cursor = self.connect(use_prepared_statements=True).cursor()
        for number in (1, 2, None):
            cursor.execute("SELECT CAST(? AS bigint) + 1", [number])
            self.assertEqual(cursor.fetchall(), [[None if number is None else number + 1]])
        cursor.execute("SELECT node_state FROM nodes WHERE node_name = ? AND node_id > ? -- a ? of no account", ["node01", 0])
        self.assertEqual(cursor.fetchall(), [["UP"]])
        moment = datetime.datetime(2024, 2, 29, 13, 14, 15)
        cursor.execute("SELECT ?::timestamp, ?::date, ?::boolean, '?'", [moment, moment.date(), True])
        self.assertEqual(cursor.fetchall(), [[moment, moment.date(), True, "?"]])
        cursor.execute("CREATE SUBCLUSTER bound")
        cursor.execute("SELECT subcluster_name FROM subclusters WHERE subcluster_name = ?", ["bound"])
        self.assertEqual(cursor.fetchall(), [["bound"]])
        cursor.executemany("SELECT CAST(? AS bigint)", [[1], [2]])
        self.assertEqual(cursor.fetchall(), [[1]])
        self.assertTrue(cursor.nextset())
        self.assertEqual(cursor.fetchall(), [[2]])

    def test_errors_leave_the_session_in_step(self):
        wanted = [
            ("SELECT * FROM missing", errors.MissingRelation, "42V01"),
            ("SELECT missing FROM nodes", errors.MissingColumn, "42703"),
            ("SELEKT 1", errors.VerticaSyntaxError, "42601"),
            ("CREATE ROUTING RULE r ROUTTE '10.0.0.0/8' TO g", errors.VerticaSyntaxError, "42601"),
            ("CREATE SUBCLUSTER default_subcluster", errors.DuplicateObject, "42710"),
            ("CREATE NODE n WITH '10.0.0.1' SUBCLUSTER missing", errors.QueryError, "42704"),
            ("SELECT 1/(SELECT 0)", errors.QueryError, "22012"),
            ("SELECT 1; SELECT 'unended", errors.VerticaSyntaxError, "42601"),
        ]
        for prepared, cursor in self.both_ways():
            for statement, kind, sqlstate in wanted + wanted:
                with self.assertRaises(kind, msg=statement) as caught:
                    cursor.execute(statement)
                    cursor.fetchall()
                self.assertEqual(caught.exception.sqlstate, sqlstate, statement)
                self.assertTrue(caught.exception.error_code.isdigit())
                self.assertEqual(self.one(cursor, "SELECT 1"), [1], statement)

    def test_the_place_of_an_error_is_that_in_the_text_sent(self):
        cursor = self.connect(use_prepared_statements=True).cursor()
        with self.assertRaises(errors.MissingColumn) as caught:
            cursor.execute("SELECT ?, ?, missing FROM nodes", ["a", "b"])
        self.assertEqual(caught.exception.position, "14")

    def test_a_value_that_is_none_is_told_when_it_runs(self):
        cursor = self.connect(use_prepared_statements=True).cursor()
        for _ in range(2):
            with self.assertRaises(errors.QueryError) as caught:
                cursor.execute("SELECT CAST(? AS bigint)", ["seven"])
            self.assertEqual(caught.exception.sqlstate, "22P02")
            cursor.execute("SELECT CAST(? AS bigint)", [7])
            self.assertEqual(cursor.fetchall(), [[7]])

    def test_a_text_that_is_wrong_leaves_the_statement_before(self):
        cursor = self.connect(use_prepared_statements=True).cursor()
        cursor.execute("SELECT CAST(? AS bigint)", [1])
        self.assertEqual(cursor.fetchall(), [[1]])
        with self.assertRaises(errors.MissingRelation):
            cursor.execute("SELECT ? FROM missing", [1])
        cursor.execute("SELECT CAST(? AS bigint)", [2])
        self.assertEqual(cursor.fetchall(), [[2]])

    def test_empty_texts(self):
        for prepared, cursor in self.both_ways():
            for text in ("", "-- nothing"):
                if prepared:
                    with self.assertRaises(errors.EmptyQueryError):
                        cursor.execute(text)
                else:
                    cursor.execute(text)
                    self.assertEqual(cursor.fetchall(), [])
            self.assertEqual(self.one(cursor, "SELECT 1"), [1])
        cursor = self.connect(use_prepared_statements=True).cursor()
        with self.assertRaises(errors.VerticaSyntaxError) as caught:
            cursor.execute("SELECT 1; SELECT 2")
        self.assertIn("Cannot insert multiple commands into a prepared statement", caught.exception.message)

    def test_several_statements_are_one_string(self):
        cursor = self.connect().cursor()
        cursor.execute("SELECT 1; CREATE SUBCLUSTER several; SELECT 2, 3")
        self.assertEqual(cursor.fetchall(), [[1]])
        self.assertTrue(cursor.nextset())
        self.assertEqual(cursor.fetchall(), [])
        self.assertTrue(cursor.nextset())
        self.assertEqual(cursor.fetchall(), [[2, 3]])
        self.assertFalse(cursor.nextset())

    def test_what_changes_the_catalog_is_lasting_at_once(self):
        for prepared, cursor in self.both_ways():
            name = f"lasting_{prepared}".lower()
            cursor.execute(f"CREATE SUBCLUSTER {name}")
            other = self.connect().cursor()
            found = f"SELECT count(*) FROM subclusters WHERE subcluster_name = '{name}'"
            self.assertEqual(self.one(other, found), [1])
            # Drivers say so all the time.
            cursor.connection.rollback()
            cursor.connection.commit()
            self.assertEqual(self.one(other, found), [1])

    def test_a_transaction_is_undone(self):
        for prepared, cursor in self.both_ways():
            cursor.execute("BEGIN")
            cursor.execute("CREATE SUBCLUSTER undone")
            cursor.fetchall()
            cursor.connection.rollback()
            count = self.one(cursor, "SELECT count(*) FROM subclusters WHERE subcluster_name = 'undone'")
            self.assertEqual(count, [0])

    def test_autocommit_is_told_at_once(self):
        for prepared in (False, True):
            connection = self.connect(autocommit=True, use_prepared_statements=prepared)
            self.assertTrue(connection.autocommit)
            connection.autocommit = False
            self.assertFalse(connection.autocommit)
            self.assertEqual(self.one(connection.cursor(), "SHOW autocommit"), ["autocommit", "off"])
            connection.autocommit = True
            self.assertTrue(connection.autocommit)

    def test_notices_reach_the_client(self):
        connection = self.connect()
        notices = []
        connection.notice_handler = notices.append
        cursor = connection.cursor()
        cursor.execute("DROP SUBCLUSTER IF EXISTS missing")
        cursor.fetchall()
        self.assertEqual([(notice.severity, notice.message) for notice in notices], [("NOTICE", "Nothing was dropped")])
        self.assertTrue(notices[0].error_code.isdigit())

    def test_a_workload_is_named_at_connect(self):
        cursor = self.connect().cursor()
        cursor.execute("CREATE SUBCLUSTER analysts")
        cursor.execute("CREATE ROUTING RULE ROUTE WORKLOAD analytics TO SUBCLUSTER analysts")
        connection = self.connect(workload="analytics")
        self.assertEqual(connection.parameters["workload"], "analytics")
        self.assertEqual(self.one(connection.cursor(), "SHOW WORKLOAD"), ["workload", "analytics"])
        self.assertEqual(self.one(connection.cursor(), "SELECT workload FROM sessions WHERE session_id = (SELECT session_id FROM current_session)"), ["analytics"])
        with self.assertWarnsRegex(UserWarning, 'Workload "unknown" does not exist'):
            connection = self.connect(workload="unknown")
        self.assertEqual(connection.parameters["workload"], "")

    def test_a_statement_is_cancelled(self):
        for prepared in (False, True):
            connection = self.connect(use_prepared_statements=prepared)
            cursor = connection.cursor()
            rows = "(SELECT column_name FROM switchyard.system_columns)"
            cursor.execute(f"SELECT a.column_name FROM {rows} a CROSS JOIN {rows} b CROSS JOIN {rows} c")
            self.assertTrue(cursor.fetchone())
            connection.cancel()
            with self.assertRaises(errors.QueryCanceled) as caught:
                while cursor.fetchone():
                    pass
            self.assertEqual(caught.exception.message, "Execution canceled by operator")
            self.assertEqual(self.one(cursor, "SELECT 1"), [1])

    def test_rows_without_end_are_many(self):
        for binary in (False, True):
            cursor = self.connect(binary_transfer=binary).cursor()
            cursor.execute("SELECT a.column_name FROM switchyard.system_columns a CROSS JOIN nodes CROSS JOIN switchyard.system_columns b LIMIT 20000")
            self.assertEqual(sum(1 for _ in cursor.iterate()), 20000)

    def test_cursors_and_statements_of_sql(self):
        for prepared, cursor in self.both_ways():
            cursor.execute("BEGIN")
            cursor.execute("DECLARE c CURSOR FOR SELECT 1 AS a UNION ALL SELECT 2 ORDER BY a")
            for row in ([1], [2]):
                cursor.execute("FETCH NEXT FROM c")
                self.assertEqual([column.name for column in cursor.description], ["a"])
                self.assertEqual(cursor.fetchall(), [row])
            cursor.connection.commit()
            cursor.execute("PREPARE p (bigint) AS SELECT $1 + 1")
            self.assertEqual(self.one(cursor, "EXECUTE p (6)"), [7])
            cursor.execute("DEALLOCATE p")

    def test_nothing_is_sent_that_drivers_do_not_know(self):
        for prepared, cursor in self.both_ways():
            with self.assertRaises(errors.QueryError) as caught:
                cursor.execute("LISTEN news")
            self.assertEqual(caught.exception.sqlstate, "0A000")
            self.assertIn("LISTEN is not supported in Vertica's protocol", caught.exception.message)
            cursor.execute("NOTIFY news")
            self.assertEqual(self.one(cursor, "SELECT 1"), [1])

    def test_copy_is_refused(self):
        cursor = self.connect().cursor()
        for statement, text in (
            ("COPY nodes TO STDOUT", "COPY is not supported in Vertica's protocol"),
            ("COPY nodes FROM STDIN", "COPY FROM is not supported here"),
        ):
            with self.assertRaises(errors.QueryError) as caught:
                cursor.execute(statement)
            self.assertEqual(caught.exception.sqlstate, "0A000")
            self.assertIn(text, caught.exception.message)
            self.assertEqual(self.one(cursor, "SELECT 1"), [1])

    def test_statements_are_closed_and_made_again(self):
        connection = self.connect(use_prepared_statements=True)
        for number in range(5):
            cursor = connection.cursor()
            cursor.execute("SELECT CAST(? AS bigint)", [number])
            self.assertEqual(cursor.fetchall(), [[number]])
            cursor.close()


class VerticaPythonByMd5(unittest.TestCase):
    MD5, SHA512 = Authentication.MD5_PASSWORD, Authentication.HASH_SHA512

    def setUp(self):
        # The driver is as it is: only what it was asked for is noted.
        self.asked = []
        note, make = self.asked, Password.__init__

        def made(message, password, auth_method=None, options=None):
            note.append(auth_method)
            make(message, password, auth_method, options)

        patch = unittest.mock.patch.object(Password, "__init__", made)
        patch.start()
        self.addCleanup(patch.stop)

    def refused(self, user, password):
        with self.assertRaises(errors.ConnectionError) as caught:
            connect(user=user, password=password)
        return str(caught.exception).replace(user, "...")

    def test_the_right_password_is_taken(self):
        with connect(user="Moritz", password="sekret") as connection:
            cursor = connection.cursor()
            cursor.execute("SELECT current_user")
            self.assertEqual(cursor.fetchall(), [["Moritz"]])
        self.assertEqual(self.asked, [self.MD5])

    def test_a_wrong_password_and_nobodys_are_refused_alike(self):
        wrong = self.refused("Moritz", "wrong")
        self.assertIn("Sqlstate: 28000", wrong)
        self.assertEqual(self.refused("moritz", "sekret"), wrong)
        self.assertEqual(self.asked, [self.MD5] * 2)
        for user in ("nobody", "Nobody"):
            self.assertEqual(self.refused(user, "sekret"), wrong)
        # Those who are not there are asked as he is, or as others are, and always the same.
        self.assertIn(self.asked[2], (self.MD5, self.SHA512))
        self.assertEqual(self.asked[2], self.asked[3])

    def test_who_was_renamed_proves_by_sha512(self):
        connect(user="lena", password="sekret").close()
        self.assertEqual(self.asked, [self.SHA512])

    def test_others_prove_by_sha512(self):
        connect().close()
        self.assertEqual(self.asked, [self.SHA512])


class VerticaPythonThroughTls(unittest.TestCase):
    def ssl_state(self, **options):
        authority = os.environ["VERTICA_TEST_AUTHORITY"]
        with connect(**{"tls_cafile": authority, **options}) as connection:
            cursor = connection.cursor()
            cursor.execute("SELECT user_name, ssl_state FROM sessions WHERE session_id = (SELECT session_id FROM current_session)")
            return cursor.fetchall()

    def test_a_session_is_encrypted(self):
        for mode in ("prefer", "require", "verify-ca", "verify-full"):
            self.assertEqual(self.ssl_state(tlsmode=mode), [[USER, "Server"]], mode)
        self.assertEqual(self.ssl_state(tlsmode="disable"), [[USER, "None"]])

    def test_who_has_a_verifier_of_postgresql_only_shows_the_password(self):
        mira = {"user": "mira", "password": "sekret"}
        self.assertEqual(self.ssl_state(tlsmode="verify-full", **mira), [["mira", "Server"]])
        for options in ({"tlsmode": "disable"}, {"tlsmode": "require", "password": "wrong"}):
            with self.assertRaises(errors.ConnectionError) as caught:
                self.ssl_state(**{**mira, **options})
            self.assertIn('Authentication failed for username "mira"', str(caught.exception))


if __name__ == "__main__":
    unittest.main()
