"""What scripts that use asyncpg do, against the server that the PG* variables name."""

import asyncio
import unittest

import asyncpg


class Asyncpg(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.connection = await asyncpg.connect()
        self.addAsyncCleanup(self.connection.close)

    async def test_the_connection_tells_of_the_server(self):
        self.assertEqual(self.connection.get_server_version().major, 15)
        self.assertEqual(self.connection.get_settings().server_encoding, "UTF8")
        self.assertEqual(await self.connection.fetchval("SELECT pg_backend_pid()"), self.connection.get_server_pid())

    async def test_parameters_are_bound(self):
        row = await self.connection.fetchrow(
            "SELECT node_name, $1::int4 AS four, $2::text AS text, $3::bool AS truth, $4::float8 AS float "
            "FROM nodes WHERE node_name = $5 AND node_id > $6",
            7, None, True, 1.5, "node01", 0,
        )
        self.assertEqual(tuple(row), ("node01", 7, None, True, 1.5))
        self.assertEqual(dict(row)["four"], 7)
        names = await self.connection.fetch("SELECT node_name FROM nodes WHERE node_name = ANY($1::text[])", ["node01"])
        self.assertEqual([name for (name,) in names], ["node01"])

    async def test_statements_are_prepared(self):
        statement = await self.connection.prepare("SELECT node_name, node_id FROM nodes WHERE node_name = $1")
        self.assertEqual([kind.name for kind in statement.get_parameters()], ["text"])
        self.assertEqual([(column.name, column.type.name) for column in statement.get_attributes()],
                         [("node_name", "varchar"), ("node_id", "int8")])
        for name, count in (("node01", 1), ("other", 0), ("node01", 1)):
            self.assertEqual(len(await statement.fetch(name)), count)
        self.assertEqual(statement.get_statusmsg(), "SELECT 1")

    async def test_every_type_is_known_or_looked_up(self):
        tables = await self.connection.fetch(
            "SELECT schema_name || '.' || table_name AS name FROM switchyard.system_tables"
        )
        self.assertGreater(len(tables), 100)
        for (name,) in tables:
            await self.connection.fetch(f"SELECT * FROM {name} LIMIT 3")

    async def test_types_are_looked_up_by_name(self):
        for kind in ("json", "jsonb"):
            await self.connection.set_type_codec(kind, encoder=str, decoder=str, schema="pg_catalog")
        await self.connection.reload_schema_state()
        with self.assertRaisesRegex(ValueError, "unknown type"):
            await self.connection.set_type_codec("missing", encoder=str, decoder=str)

    async def test_a_pool_resets_what_it_lends(self):
        async with asyncpg.create_pool(min_size=1, max_size=2) as pool:
            async with pool.acquire() as connection:
                await connection.execute("SET application_name = 'changed'")
                await connection.execute("SET statement_timeout = '1min'")
            async with pool.acquire() as connection:
                self.assertEqual(await connection.fetchval("SHOW application_name"), "")
            many = await asyncio.gather(*(pool.fetchval("SELECT $1::int8", number) for number in range(20)))
            self.assertEqual(many, list(range(20)))

    async def test_a_cursor_reads_in_portions(self):
        total = await self.connection.fetchval("SELECT count(*) FROM pg_attribute")
        async with self.connection.transaction():
            cursor = self.connection.cursor("SELECT attname, attnum FROM pg_attribute", prefetch=500)
            self.assertEqual(len([row async for row in cursor]), total)
            cursor = await self.connection.cursor("SELECT attname FROM pg_attribute")
            self.assertEqual(len(await cursor.fetch(3)), 3)
            await cursor.forward(5)
            self.assertEqual(len(await cursor.fetch(4)), 4)

    async def test_transactions_nest(self):
        async with self.connection.transaction(isolation="serializable"):
            await self.connection.execute("CREATE SUBCLUSTER kept")
            with self.assertRaises(ZeroDivisionError):
                async with self.connection.transaction():
                    await self.connection.execute("CREATE SUBCLUSTER lost")
                    raise ZeroDivisionError
        rows = await self.connection.fetch("SELECT subcluster_name FROM subclusters WHERE NOT is_default")
        self.assertEqual([name for (name,) in rows], ["kept"])
        async with self.connection.transaction(readonly=True):
            self.assertEqual(await self.connection.fetchval("SELECT 1"), 1)

    async def test_errors_have_their_code(self):
        with self.assertRaises(asyncpg.UndefinedTableError) as caught:
            await self.connection.fetch("SELECT * FROM missing")
        self.assertEqual((caught.exception.sqlstate, caught.exception.position), ("42P01", "15"))
        with self.assertRaises(asyncpg.UndefinedColumnError):
            await self.connection.fetch("SELECT missing FROM nodes")
        with self.assertRaises(asyncpg.PostgresSyntaxError):
            await self.connection.execute("SELEC 1")

    async def test_several_statements_in_one_string(self):
        self.assertEqual(await self.connection.execute("SELECT 1; SELECT 2"), "SELECT 1")

    async def test_rows_are_copied(self):
        copied = []

        async def keep(data):
            copied.append(data)

        await self.connection.copy_from_query("SELECT node_name, $1::int4 FROM nodes", 7, output=keep, format="csv")
        self.assertEqual(b"".join(copied), b"node01,7\n")

    async def test_functions_in_from_take_parameters(self):
        rows = await self.connection.fetch("SELECT * FROM switchyard.explain_route($1, $2)", "10.9.9.9", None)
        self.assertIn(("connection", "stay"), [(row["stage"], row["outcome"]) for row in rows])
        rows = await self.connection.fetch(
            "SELECT * FROM switchyard.test_authentication(tls => $1, address => $2, \"user\" => $3)",
            False, "127.0.0.1", "dbadmin",
        )
        self.assertGreater(len(rows), 0)
        self.assertEqual(await self.connection.fetchval("SELECT sum(x) FROM generate_series($1::int, $2::int) x", 1, 4), 10)

    async def test_a_query_is_cancelled(self):
        slow = "SELECT count(*) FROM pg_attribute a, pg_attribute b, pg_attribute c"
        with self.assertRaises(asyncio.TimeoutError):
            await self.connection.fetch(slow, timeout=0.2)
        self.assertEqual(await self.connection.fetchval("SELECT 1"), 1)


if __name__ == "__main__":
    unittest.main()
