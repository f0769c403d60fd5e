"""What scripts that use vertica-python and ask for load balancing do, against the three members of a quickstart: the
VERTICA_TEST_* variables name the first one's port, all ports, and the superuser."""

import collections
import os
import socket
import unittest
import warnings

import vertica_python
from vertica_python import errors

HOST = "127.0.0.1"
PORTS = [int(port) for port in os.environ["VERTICA_TEST_PORTS"].split(",")]
NODES = ["v_switchyard_node0001", "v_switchyard_node0002", "v_switchyard_node0003"]
USER = os.environ["VERTICA_TEST_USER"]
PASSWORD = os.environ["VERTICA_TEST_PASSWORD"]
AUTHORITY = os.environ.get("VERTICA_TEST_AUTHORITY")
HAS_IPV6 = socket.has_ipv6 and os.path.exists("/proc/net/if_inet6")
NOT_SUPPORTED = "Load balancing requested but not supported by server"


def connect(**options):
    given = {"host": HOST, "port": PORTS[0], "user": USER, "password": PASSWORD, "tlsmode": "disable"}
    return vertica_python.connect(**{**given, **options})


def rows(connection, *arguments):
    cursor = connection.cursor()
    cursor.execute(*arguments)
    return cursor.fetchall()


class Members(unittest.TestCase):
    """Three members, as the samples are."""

    def setUp(self):
        warnings.simplefilter("ignore", ResourceWarning)
        warnings.simplefilter("error", UserWarning)
        self.addCleanup(warnings.resetwarnings)
        self.admin = connect()
        self.addCleanup(self.admin.close)
        # Whatever the test before has made of them.
        self.run_all(
            "ALTER LOAD BALANCE GROUP everyone SET POLICY TO 'ROUNDROBIN'",
            "ALTER ROUTING RULE loopback SET ROUTE TO '127.0.0.0/8'",
            "SELECT SET_LOAD_BALANCE_POLICY('NONE')",
            "SELECT RESET_LOAD_BALANCE_POLICY()",
            f"ALTER NETWORK ADDRESS address3 SET TO '127.0.0.1' PORT {PORTS[2]}",
        )

    def run_all(self, *statements):
        for statement in statements:
            rows(self.admin, statement)

    def node(self, prepared=False, **options):
        """Which node serves a connection, and whether its port is that node's."""
        with connect(use_prepared_statements=prepared, **options) as connection:
            where = "SELECT node_name FROM v_monitor.current_session"
            [[node]] = rows(connection, f"{where} WHERE client_type = ?", ["vertica-python"]) if prepared else rows(connection, where)
            return node, connection.socket.getpeername()[1]

    def spread(self, count, **options):
        found = collections.Counter(self.node(**options) for _ in range(count))
        for node, port in found:
            self.assertEqual(port, PORTS[NODES.index(node)], "the client is not redirected")
        return {node: times for (node, _), times in found.items()}


class Balanced(Members):
    def test_each_policy_with_and_without_asking(self):
        for classic in (False, True):
            if classic:
                # No rule is for this machine any more.
                self.run_all("ALTER ROUTING RULE loopback SET ROUTE TO '198.51.100.0/24'")
            for policy in ("ROUNDROBIN", "RANDOM", "NONE"):
                if classic:
                    self.run_all(f"SELECT SET_LOAD_BALANCE_POLICY('{policy}')")
                else:
                    self.run_all(f"ALTER LOAD BALANCE GROUP everyone SET POLICY TO '{policy}'")
                for prepared in (False, True):
                    with self.subTest(classic=classic, policy=policy, prepared=prepared):
                        self.assertEqual(self.spread(3, prepared=prepared), {NODES[0]: 3})
                        self.spread_by(policy, classic, prepared)

    def spread_by(self, policy, classic, prepared):
        asking = {"connection_load_balance": True, "prepared": prepared}
        if policy == "ROUNDROBIN":
            self.assertEqual(self.spread(9, **asking), {node: 3 for node in NODES})
        elif policy == "RANDOM":
            seen = set()
            while seen != set(NODES):
                seen |= set(self.spread(1, **asking))
        elif classic:
            # The interior rule: of its subcluster the first member is the only one.
            self.assertEqual(self.spread(3, **asking), {NODES[0]: 3})
        else:
            for _ in range(3):
                with self.assertWarnsRegex(UserWarning, NOT_SUPPORTED):
                    self.assertEqual(self.node(**asking), (NODES[0], PORTS[0]))

    def test_each_member_has_turns_of_its_own(self):
        for port in PORTS:
            nodes = [self.node(port=port, connection_load_balance=True)[0] for _ in range(3)]
            self.assertEqual(sorted(nodes), NODES)

    def test_a_redirected_session_does_all_that_others_do(self):
        seen = set()
        while len(seen) < 3:
            with connect(connection_load_balance=True, use_prepared_statements=True, session_label="a label") as connection:
                [[node, label]] = rows(connection, "SELECT node_name, client_label FROM current_session")
                self.assertEqual(label, "a label")
                seen.add(node)
                for _ in range(2):
                    self.assertEqual(rows(connection, "SELECT CAST(? AS bigint) + 1", [1]), [[2]])
                    with self.assertRaises(errors.MissingRelation):
                        rows(connection, "SELECT ? FROM missing", [1])
                    with self.assertRaises(errors.QueryError) as caught:
                        rows(connection, "SELECT CAST(? AS bigint)", ["seven"])
                    self.assertEqual(caught.exception.sqlstate, "22P02")
                self.assertEqual(rows(connection, "SELECT CAST(? AS bigint) + 1", [2]), [[3]])

    def test_a_workload_is_named_at_connect(self):
        seen = set()
        while len(seen) < 3:
            with connect(connection_load_balance=True, workload="analytics") as connection:
                self.assertEqual(connection.parameters["workload"], "analytics")
                self.assertEqual(rows(connection, "SHOW WORKLOAD"), [["workload", "analytics"]])
                seen.add(rows(connection, "SELECT node_name FROM current_session")[0][0])

    def test_a_wrong_password_is_refused_wherever_it_is_told(self):
        self.run_all("CREATE USER mira IDENTIFIED BY 'right'")
        for _ in NODES:
            with self.assertRaises(errors.ConnectionError) as caught:
                connect(user="mira", password="wrong", connection_load_balance=True)
            self.assertIn('Authentication failed for username "mira"', str(caught.exception))
        nodes = self.spread(3, user="mira", password="right", connection_load_balance=True)
        self.assertEqual(nodes, {node: 1 for node in NODES})

    def test_who_is_sent_to_nobody_comes_back(self):
        with socket.create_server((HOST, 0)) as server:
            dead = server.getsockname()[1]
        self.run_all(f"ALTER NETWORK ADDRESS address3 SET TO '127.0.0.1' PORT {dead}")
        # The member that was called serves it, without being asked again.
        for _ in range(6):
            node, port = self.node(connection_load_balance=True)
            self.assertIn((node, port), list(zip(NODES, PORTS))[:2])

    def test_another_member_is_called_when_one_is_down(self):
        with socket.create_server((HOST, 0)) as server:
            dead = server.getsockname()[1]
        options = {"port": dead, "backup_server_node": [(HOST, PORTS[1])]}
        self.assertEqual(self.spread(2, **options), {NODES[1]: 2})
        self.assertEqual(self.spread(3, connection_load_balance=True, **options), {node: 1 for node in NODES})
        self.run_all(f"SELECT STOP_MEMBER('{NODES[2]}')")
        self.addCleanup(self.run_all, f"SELECT START_MEMBER('{NODES[2]}')")
        self.assertEqual(self.spread(4, connection_load_balance=True), {NODES[0]: 2, NODES[1]: 2})
        options = {"port": PORTS[2], "backup_server_node": [(HOST, PORTS[0])]}
        self.assertEqual(self.spread(4, connection_load_balance=True, **options), {NODES[0]: 2, NODES[1]: 2})

    def connect_by_ipv6(self):
        """A connection that asks, who serves it, and whether the driver thinks that nobody can be asked: no IPv6 address is
        told but that of the member itself, since not every driver can call one."""
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always", UserWarning)
            connection = connect(host="::1", connection_load_balance=True)
        self.addCleanup(lambda: connection.closed() or connection.close())
        told = [str(warning.message) for warning in told if warning.category is UserWarning]
        [[node, client]] = rows(connection, "SELECT node_name, client_hostname FROM current_session")
        self.assertEqual(bool(told), node != NODES[0], told)
        self.assertTrue(all(NOT_SUPPORTED in text for text in told), told)
        # Whoever serves knows where the client is, not only who passed it on.
        address = connection.socket.getsockname()
        self.assertEqual(client, f"[{address[0]}]:{address[1]}")
        self.assertEqual(connection.socket.getpeername()[1], PORTS[0])
        return connection, node

    @unittest.skipUnless(HAS_IPV6, "this machine has no IPv6")
    def test_who_comes_by_ipv6_is_passed_on(self):
        self.assertEqual(self.node(host="::1"), (NODES[0], PORTS[0]))
        served = collections.Counter(self.connect_by_ipv6()[1] for _ in range(9))
        self.assertEqual(served, {node: 3 for node in NODES})

    @unittest.skipUnless(HAS_IPV6, "this machine has no IPv6")
    def test_who_is_passed_on_can_cancel(self):
        seen = set()
        while len(seen) < 3:
            connection, node = self.connect_by_ipv6()
            seen.add(node)
            cursor = connection.cursor()
            many = "(SELECT column_name FROM switchyard.system_columns)"
            cursor.execute(f"SELECT a.column_name FROM {many} a CROSS JOIN {many} b CROSS JOIN {many} c")
            self.assertTrue(cursor.fetchone())
            connection.cancel()
            with self.assertRaises(errors.QueryCanceled):
                while cursor.fetchone():
                    pass
            self.assertEqual(rows(connection, "SELECT 1"), [[1]])


class BalancedThroughTls(Members):
    def test_every_member_speaks_it(self):
        seen = collections.Counter()
        for mode in ("require", "verify-ca", "verify-full"):
            for _ in NODES:
                verified = {"tls_cafile": AUTHORITY} if mode.startswith("verify") else {}
                with connect(connection_load_balance=True, tlsmode=mode, **verified) as connection:
                    state = "SELECT node_name, ssl_state FROM sessions WHERE session_id = (SELECT session_id FROM current_session)"
                    [[node, ssl_state]] = rows(connection, state)
                    self.assertEqual(ssl_state, "Server")
                    seen[node] += 1
        self.assertEqual(seen, {node: 3 for node in NODES})
        self.run_all("CREATE USER nora IDENTIFIED BY 'right'")
        with self.assertRaises(errors.ConnectionError):
            connect(user="nora", password="wrong", connection_load_balance=True, tlsmode="require")


if __name__ == "__main__":
    unittest.main()
