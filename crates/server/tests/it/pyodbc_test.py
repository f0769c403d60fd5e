"""What tools on psqlODBC do, by way of pyodbc, against the server that the PG* variables name."""

import glob
import os
import unittest

import pyodbc

DRIVER = os.environ.get("SWITCHYARD_TEST_ODBC_DRIVER") or glob.glob("/usr/lib/*/odbc/psqlodbcw.so")[0]


def connect(**more):
    settings = {
        "Driver": DRIVER,
        "Server": os.environ["PGHOST"],
        "Port": os.environ["PGPORT"],
        "Uid": os.environ["PGUSER"],
        "Pwd": "{" + os.environ["PGPASSWORD"] + "}",
        "Database": os.environ["PGDATABASE"],
        **more,
    }
    return pyodbc.connect(";".join(f"{name}={value}" for name, value in settings.items()), autocommit=True)


class Odbc(unittest.TestCase):
    def setUp(self):
        self.connection = connect()
        self.addCleanup(self.connection.close)
        self.cursor = self.connection.cursor()

    def test_the_connection_tells_of_the_server(self):
        self.assertEqual(self.connection.getinfo(pyodbc.SQL_DBMS_NAME), "PostgreSQL")
        self.assertEqual(self.connection.getinfo(pyodbc.SQL_DATABASE_NAME), "switchyard")
        self.assertEqual(self.connection.getinfo(pyodbc.SQL_USER_NAME), "dbadmin")
        self.assertTrue(self.connection.getinfo(pyodbc.SQL_DBMS_VER).startswith("15"))

    def test_tables_are_listed(self):
        tables = {(row.table_schem, row.table_name): row.table_type for row in self.cursor.tables()}
        self.assertEqual(tables["v_catalog", "nodes"], "TABLE")
        found = self.cursor.tables(schema="v_monitor", table="node%", tableType="TABLE").fetchall()
        self.assertEqual([row.table_name for row in found], ["node_states"])
        self.assertIn("pg_class", [row.table_name for row in self.cursor.tables(tableType="SYSTEM TABLE")])

    def test_columns_are_listed(self):
        first, second, *_ = self.cursor.columns(table="nodes", schema="v_catalog").fetchall()
        self.assertEqual((first.column_name, first.type_name, first.nullable), ("node_name", "varchar", 1))
        self.assertEqual((second.column_name, second.type_name), ("node_id", "int8"))
        self.assertGreater(len(self.cursor.columns().fetchall()), 500)

    def test_keys_and_the_like_are_looked_for(self):
        self.assertEqual(self.cursor.primaryKeys("nodes", schema="v_catalog").fetchall(), [])
        self.assertEqual(self.cursor.foreignKeys("nodes", schema="v_catalog").fetchall(), [])
        self.assertEqual(self.cursor.rowIdColumns("nodes", schema="v_catalog").fetchall(), [])
        self.cursor.rowVerColumns("nodes", schema="v_catalog").fetchall()
        for row in self.cursor.statistics("nodes", schema="v_catalog", unique=True).fetchall():
            self.assertIsNone(row.index_name)
        self.assertIn("has_role", [row.procedure_name for row in self.cursor.procedures()])
        self.assertEqual([row.type_name for row in self.cursor.getTypeInfo(pyodbc.SQL_BIGINT)], ["int8"])

    def test_queries_are_answered(self):
        for options in ({}, {"UseServerSidePrepare": "1"}, {"UseServerSidePrepare": "0"}, {"Protocol": "7.4-2"}):
            cursor = connect(**options).cursor()
            row = cursor.execute(
                "SELECT node_name, ?, ?, node_id FROM nodes WHERE node_name = ? AND node_id > ?", "text", 1.5, "node01", 0
            ).fetchone()
            self.assertEqual((row.node_name, row[1], float(row[2])), ("node01", "text", 1.5))
            self.assertEqual(cursor.description[0][0], "node_name")
            self.assertEqual(cursor.description[3][1], int)
            row = cursor.execute("SELECT 1::int2, true, 'x'::text, NULL, DATE '2026-01-02', now()").fetchone()
            self.assertEqual((row[0], row[2], row[3], str(row[4])), (1, "x", None, "2026-01-02"))

    def test_a_transaction_is_undone(self):
        connection = connect()
        connection.autocommit = False
        cursor = connection.cursor()
        cursor.execute("CREATE SUBCLUSTER undone")
        connection.rollback()
        self.assertEqual(cursor.execute("SELECT count(*) FROM subclusters WHERE NOT is_default").fetchval(), 0)
        with self.assertRaises(pyodbc.ProgrammingError):
            cursor.execute("SELECT * FROM missing")
        # psqlODBC undoes a failed statement by itself, so that the transaction goes on.
        self.assertEqual(cursor.execute("SELECT 1").fetchval(), 1)
        connection.commit()

    def test_errors_have_their_code(self):
        for statement, code in (("SELECT * FROM missing", "42P01"), ("SELECT missing FROM nodes", "42703")):
            with self.assertRaises(pyodbc.Error) as caught:
                self.cursor.execute(statement)
            self.assertIn(code, {caught.exception.args[0], "42P01" if caught.exception.args[0] == "42S02" else "42703"})


if __name__ == "__main__":
    unittest.main()
