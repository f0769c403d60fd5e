"""What pgcli does at its start and when asked, against the server that the PG* variables name."""

import os
import pty
import select
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from pgcli.completion_refresher import CompletionRefresher
from pgcli.pgexecute import PGExecute
from pgspecial.main import PGSpecial
from prompt_toolkit.document import Document

# Every command of pgcli that looks into the catalog.
DESCRIBING = r"""
\l \l+ \du \du+ \dp \z \ddp \db \db+ \dn \dn+ \dx \dx+ \dt \dt+ \dv \dv+ \dm \ds \di \df \df+ \dT \dT+ \dD \dD+ \dF
\dF+ \d \d+ \dE
""".split() + [
    r"\d nodes",
    r"\d+ nodes",
    r"\d v_monitor.sessions",
    r"\d pg_class",
    r"\d+ information_schema.columns",
    r"\dt v_monitor.*",
    r"\dv information_schema.*",
    r"\df has_role",
    r"\dT int4",
    r"\sf current_schemas",
    r"\sf+ current_schemas",
]

WAIT_MAX_S = 120


def executor():
    return PGExecute(
        os.environ["PGDATABASE"],
        os.environ["PGUSER"],
        os.environ["PGPASSWORD"],
        os.environ["PGHOST"],
        os.environ["PGPORT"],
    )


def environment(home):
    return {**os.environ, "HOME": home, "XDG_CONFIG_HOME": home, "PAGER": "cat", "LC_ALL": "C.UTF-8", "TERM": "xterm"}


class Completion(unittest.TestCase):
    """The names that pgcli offers: it asks for all there are when it starts."""

    @classmethod
    def setUpClass(cls):
        done = threading.Event()
        found = []

        def keep(completer):
            found.append(completer)
            done.set()

        failures = []
        threading.excepthook = lambda arguments: (failures.append(arguments.exc_value), done.set())
        own = executor()
        cls.addClassCleanup(own.conn.close)
        CompletionRefresher().refresh(own, PGSpecial(), keep, settings={"single_connection": True})
        done.wait(WAIT_MAX_S)
        if failures:
            raise failures[0]
        (cls.completer,) = found

    def offered(self, text):
        document = Document(text=text, cursor_position=len(text))
        return {completion.text for completion in self.completer.get_completions(document, None, smart_completion=True)}

    def test_tables_and_schemas_are_offered(self):
        offered = self.offered("SELECT * FROM ")
        self.assertLessEqual({"nodes", "sessions", "routing_rules", "v_catalog", "information_schema"}, offered)
        self.assertIn("columns", self.offered("SELECT * FROM information_schema."))

    def test_columns_are_offered(self):
        self.assertLessEqual({"node_name", "node_id", "node_state"}, self.offered("SELECT * FROM nodes WHERE "))
        self.assertLessEqual({"node_name", "node_id"}, self.offered("SELECT * FROM nodes n WHERE n."))

    def test_functions_types_and_databases_are_offered(self):
        self.assertIn("has_role", self.completer.dbmetadata["functions"]["v_catalog"])
        self.assertIn("switchyard", self.offered("\\c "))
        self.assertEqual(set(self.completer.databases), {"switchyard"})


class Commands(unittest.TestCase):
    def setUp(self):
        self.executor = executor()
        self.addCleanup(self.executor.conn.close)
        self.special = PGSpecial()

    def run_command(self, command):
        (title, rows, headers, status, _, success, _), *_ = self.executor.run(command, pgspecial=self.special)
        self.assertTrue(success, command)
        return title, list(rows) if rows else [], headers, status

    def test_every_command_is_answered(self):
        for command in DESCRIBING:
            with self.subTest(command):
                for answer in self.executor.run(command, pgspecial=self.special):
                    self.assertTrue(answer[5])
                    list(answer[1] or [])

    def test_tables_are_described(self):
        _, rows, headers, _ = self.run_command("\\d nodes")
        self.assertEqual(list(headers)[:2], ["Column", "Type"])
        self.assertEqual([cell.strip() for cell in rows[0][:2]], ["node_name", "character varying"])
        _, rows, *_ = self.run_command("\\dt nodes")
        self.assertEqual(tuple(rows[0]), ("v_catalog", "nodes", "table", "dbadmin"))
        _, rows, *_ = self.run_command("\\l")
        self.assertEqual(rows[0][:2], ("switchyard", "dbadmin"))

    def test_queries_are_answered(self):
        _, rows, headers, status = self.run_command("SELECT node_name, node_state FROM nodes")
        self.assertEqual((rows, list(headers), status), ([("node01", "UP")], ["node_name", "node_state"], "SELECT 1"))
        *_, status = self.run_command("CREATE SUBCLUSTER made")
        self.assertEqual(status, "CREATE SUBCLUSTER")
        self.run_command("DROP SUBCLUSTER made")

    def test_what_pgcli_asks_besides_is_answered(self):
        self.assertEqual(self.executor.search_path()[0], "pg_catalog")
        self.assertEqual(list(self.executor.databases()), ["switchyard"])
        self.assertIn("current_schemas", self.executor.function_definition("current_schemas"))
        self.assertEqual(list(self.executor.foreignkeys()), [])
        self.assertIsInstance(self.executor.get_timezone(), str)
        self.assertTrue(self.executor.valid_transaction() is False)


class Program(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.environment = environment(folder.name)
        self.program = os.path.join(os.path.dirname(sys.executable), "pgcli")

    def test_commands_are_run_from_the_command_line(self):
        arguments = ["-c", "SELECT node_name FROM nodes", "-c", "\\dn", "--less-chatty", "-w"]
        ran = subprocess.run(
            [sys.executable, self.program, *arguments], env=self.environment, capture_output=True, text=True, timeout=WAIT_MAX_S
        )
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("node01", ran.stdout)
        self.assertIn("v_monitor", ran.stdout)

    def test_it_talks_at_a_terminal(self):
        child, terminal = pty.fork()
        if child == 0:
            os.execve(sys.executable, [sys.executable, self.program, "-w", "--prompt", "ready:\\d> "], self.environment)
        shown = b""

        def expect(text):
            nonlocal shown
            end = time.monotonic() + WAIT_MAX_S
            while text not in shown:
                self.assertGreater(end, time.monotonic(), f"no {text} in {shown}")
                if not select.select([terminal], [], [], 1)[0]:
                    continue
                part = os.read(terminal, 65536)
                # It asks where the cursor is.
                if b"\x1b[6n" in part:
                    os.write(terminal, b"\x1b[1;1R")
                shown += part
            shown = shown[shown.index(text) + len(text):]

        try:
            expect(b"ready:switchyard>")
            os.write(terminal, b"SELECT 40 + 2 AS answer, node_state FROM nodes;\r")
            expect(b"answer")
            expect(b"42")
            expect(b"SELECT 1")
            os.write(terminal, b"\\d subclusters\r")
            expect(b"subcluster_oid")
            os.write(terminal, b"\\q\r")
        finally:
            try:
                while os.read(terminal, 65536):
                    pass
            except OSError:
                pass
            _, status = os.waitpid(child, 0)
            os.close(terminal)
        self.assertEqual(os.waitstatus_to_exitcode(status), 0)


if __name__ == "__main__":
    unittest.main()
