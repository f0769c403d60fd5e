"""What scripts that use psycopg and ask for load balancing do, against the three members of a quickstart."""

import collections
import os
import socket
import unittest

import psycopg

PORTS = [int(port) for port in os.environ["VERTICA_TEST_PORTS"].split(",")]
NODES = ["v_switchyard_node0001", "v_switchyard_node0002", "v_switchyard_node0003"]
ASKING = "-c connection_load_balance=on"


class Balanced(unittest.TestCase):
    def connect(self, more="", **options):
        connection = psycopg.connect("", options=f"{ASKING} {more}", autocommit=True, **options)
        self.addCleanup(connection.close)
        return connection

    def on_every_node(self, **options):
        """A connection that each node serves."""
        found = {}
        while len(found) < 3:
            connection = self.connect(**options)
            [node] = connection.execute("SELECT node_name FROM current_session").fetchone()
            found.setdefault(node, connection)
        return found

    def test_connections_are_spread(self):
        served = collections.Counter()
        for _ in range(9):
            with self.connect() as connection:
                served[connection.execute("SELECT node_name FROM current_session").fetchone()[0]] += 1
                # It is the first member all the same that the client is connected to.
                self.assertEqual(connection.info.port, PORTS[0])
        self.assertEqual(served, {node: 3 for node in NODES})

    def test_the_chosen_member_knows_the_client(self):
        given = {"more": "-c timezone=Asia/Tokyo -c statement_timeout=4321", "application_name": "balanced"}
        for node, connection in self.on_every_node(**given).items():
            row = connection.execute(
                "SELECT user_name, client_type FROM sessions WHERE session_id = (SELECT session_id FROM current_session)"
            ).fetchone()
            self.assertEqual(row, (os.environ["PGUSER"], "balanced"), node)
            [client] = connection.execute("SELECT client_hostname FROM current_session").fetchone()
            with socket.socket(fileno=os.dup(connection.fileno())) as own:
                self.assertEqual(client, "{}:{}".format(*own.getsockname()))
            self.assertEqual(connection.info.parameter_status("TimeZone"), "Asia/Tokyo")
            self.assertEqual(connection.execute("SHOW statement_timeout").fetchone(), ("4321ms",))
            self.assertEqual(connection.execute("SHOW application_name").fetchone(), ("balanced",))
            self.assertEqual(connection.execute("SHOW connection_load_balance").fetchone(), ("on",))

    def test_statements_and_errors(self):
        for connection in self.on_every_node().values():
            for prepare in (False, True):
                for number in range(3):
                    row = connection.execute("SELECT %s::int8 + 1", (number,), prepare=prepare).fetchone()
                    self.assertEqual(row, (number + 1,))
                with self.assertRaises(psycopg.errors.InvalidTextRepresentation):
                    connection.execute("SELECT %s::text::int8", ("seven",), prepare=prepare)
            with connection.pipeline():
                cursors = [connection.execute("SELECT %s::int8", (number,)) for number in range(20)]
                self.assertEqual([cursor.fetchone() for cursor in cursors], [(number,) for number in range(20)])

    def test_a_change_is_made_wherever_the_session_is(self):
        for number, connection in enumerate(self.on_every_node().values()):
            connection.execute(f"CREATE SUBCLUSTER passed_on_{number}")
        with psycopg.connect("") as connection:
            found = connection.execute("SELECT count(*) FROM subclusters WHERE subcluster_name LIKE 'passed_on_%'")
            self.assertEqual(found.fetchone(), (3,))

    def test_a_statement_is_cancelled(self):
        many = "(SELECT column_name FROM switchyard.system_columns)"
        text = f"SELECT a.column_name FROM {many} a CROSS JOIN {many} b CROSS JOIN {many} c"
        for connection in self.on_every_node().values():
            with connection.cursor() as cursor, self.assertRaises(psycopg.errors.QueryCanceled):
                for row in cursor.stream(text):
                    connection.cancel()
            self.assertEqual(connection.execute("SELECT 1").fetchone(), (1,))

    def test_a_wrong_password_is_refused(self):
        with psycopg.connect("", autocommit=True) as connection:
            connection.execute("CREATE USER petra IDENTIFIED BY 'right'")
        for _ in NODES:
            with self.assertRaisesRegex(psycopg.OperationalError, 'password authentication failed for user "petra"'):
                self.connect(user="petra", password="wrong")
        self.assertEqual(len(self.on_every_node(user="petra", password="right")), 3)


if __name__ == "__main__":
    unittest.main()
