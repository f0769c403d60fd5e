"""What scripts and tools on SQLAlchemy 2 do, with each driver, against the server that the PG* variables name."""

import os
import unittest
from inspect import signature as inspect_signature
from urllib.parse import quote

from sqlalchemy import BigInteger, MetaData, Table, create_engine, func, inspect, select, text, types
from sqlalchemy.engine.reflection import ObjectKind
from sqlalchemy.exc import NoSuchTableError, ProgrammingError
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column
from sqlalchemy.pool import NullPool

SCHEMAS = ["hologres", "information_schema", "switchyard", "v_catalog", "v_internal", "v_monitor"]


def engine(driver, **options):
    environment = {name: quote(os.environ[name]) for name in ("PGUSER", "PGPASSWORD", "PGHOST", "PGPORT", "PGDATABASE")}
    url = "postgresql+{driver}://{PGUSER}:{PGPASSWORD}@{PGHOST}:{PGPORT}/{PGDATABASE}"
    return create_engine(url.format(driver=driver, **environment), **options)


class Base(DeclarativeBase):
    pass


class Node(Base):
    __tablename__ = "nodes"
    node_id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    node_name: Mapped[str]
    node_state: Mapped[str]


class WithDriver:
    driver = ""

    def setUp(self):
        self.engine = engine(self.driver)
        self.addCleanup(self.engine.dispose)

    def test_one_table_is_described(self):
        inspector = inspect(self.engine)
        first, second, *_ = inspector.get_columns("nodes")
        self.assertEqual((first["name"], str(first["type"]), first["nullable"]), ("node_name", "VARCHAR", True))
        self.assertEqual((second["name"], str(second["type"])), ("node_id", "BIGINT"))
        self.assertEqual(first["comment"], "The node's name.")
        self.assertEqual(inspector.get_pk_constraint("nodes")["constrained_columns"], [])
        self.assertEqual(inspector.get_foreign_keys("nodes"), [])
        self.assertEqual(inspector.get_indexes("nodes"), [])
        self.assertEqual(inspector.get_unique_constraints("nodes"), [])
        self.assertEqual(inspector.get_check_constraints("nodes"), [])
        self.assertEqual(inspector.get_table_comment("nodes"), {"text": "The nodes of the cluster and their state."})
        with self.assertRaises(NoSuchTableError):
            inspector.get_columns("missing")

    def test_a_table_is_reflected(self):
        nodes = Table("nodes", MetaData(), autoload_with=self.engine)
        self.assertEqual(nodes.c.node_name.comment, "The node's name.")
        with self.engine.connect() as connection:
            rows = connection.execute(select(nodes.c.node_name, nodes.c.node_state)).all()
        self.assertEqual(rows, [("node01", "UP")])

    def test_objects_are_read(self):
        with Session(self.engine) as session:
            (node,) = session.scalars(select(Node).where(Node.node_state == "UP").order_by(Node.node_name)).all()
            self.assertEqual(node.node_name, "node01")
            self.assertIs(session.get(Node, node.node_id), node)
            session.expire(node)
            self.assertEqual(node.node_state, "UP")
            counted = select(Node.node_state, func.count()).group_by(Node.node_state)
            self.assertEqual(session.execute(counted).all(), [("UP", 1)])
            named = select(Node).where(Node.node_name.in_(["node01", "other"]), Node.node_name.ilike("NODE%"))
            self.assertEqual(session.scalars(named.limit(1).offset(0)).one(), node)
            self.assertIsNone(session.scalars(select(Node).where(Node.node_name == "other")).one_or_none())

    def test_transactions_and_savepoints(self):
        with self.engine.connect() as connection:
            connection.execute(text("CREATE SUBCLUSTER undone"))
            with connection.begin_nested() as savepoint:
                connection.execute(text("CREATE SUBCLUSTER undone_too"))
                savepoint.rollback()
            with self.assertRaises(ProgrammingError), connection.begin_nested():
                connection.execute(text("SELECT * FROM missing"))
            found = connection.execute(text("SELECT subcluster_name FROM subclusters WHERE NOT is_default")).scalars()
            self.assertEqual(found.all(), ["undone"])
            connection.rollback()
            found = connection.execute(text("SELECT count(*) FROM subclusters WHERE NOT is_default")).scalar_one()
            self.assertEqual(found, 0)

    def test_isolation_levels_are_set(self):
        for level in ("AUTOCOMMIT", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"):
            with self.engine.connect().execution_options(isolation_level=level) as connection:
                self.assertEqual(connection.execute(text("SELECT 1")).scalar_one(), 1)
                if level != "AUTOCOMMIT":
                    self.assertEqual(connection.get_isolation_level(), level)
        other = engine(self.driver, poolclass=NullPool)
        with other.connect().execution_options(postgresql_readonly=True) as connection:
            self.assertEqual(connection.execute(text("SELECT 1")).scalar_one(), 1)

    def test_every_schema_is_inspected(self):
        inspector = inspect(self.engine)
        self.assertEqual(sorted(inspector.get_schema_names()), SCHEMAS)
        self.assertEqual(inspector.default_schema_name, "v_catalog")
        self.assertIn("nodes", inspector.get_table_names())
        self.assertTrue(inspector.has_table("nodes"))
        self.assertFalse(inspector.has_table("missing"))
        declared = {}
        with self.engine.connect() as connection:
            rows = connection.execute(text("SELECT schema_name, table_name, description FROM switchyard.system_tables"))
            for schema, table, description in rows:
                declared.setdefault(schema, {})[table] = description
        for schema in SCHEMAS:
            views = set(inspector.get_view_names(schema))
            tables = set(inspector.get_table_names(schema))
            self.assertEqual(tables | views, set(declared[schema]))
            self.assertFalse(tables & views)
            comments = inspector.get_multi_table_comment(schema)
            for table in tables:
                self.assertEqual(comments[schema, table], {"text": declared[schema][table]})
            self.assertEqual(inspector.get_sequence_names(schema), [])
            self.assertEqual(inspector.get_materialized_view_names(schema), [])
            self.assertEqual(inspector.get_enums(schema), [])
            self.assertEqual(inspector.get_domains(schema), [])
        self.assertEqual(inspector.get_temp_table_names(), [])

    def test_everything_is_reflected_and_read(self):
        metadata = MetaData()
        with self.engine.connect() as connection:
            for schema in SCHEMAS:
                metadata.reflect(connection, schema=schema, views=True)
            self.assertEqual({table.schema for table in metadata.tables.values()}, set(SCHEMAS))
            for table in metadata.sorted_tables:
                for column in table.columns:
                    self.assertNotIsInstance(column.type, types.NullType, str(column))
                    self.assertTrue(column.comment, str(column))
                self.assertFalse(table.primary_key.columns or table.foreign_keys or table.indexes)
                connection.execute(select(table).limit(2)).all()

    def test_the_inspector_answers_everything(self):
        inspector = inspect(self.engine)
        asked = set()
        # What our views are made of is no SQL.
        names = set(dir(inspector)) - {"get_view_definition"}
        for name in sorted(name for name in names if name.startswith(("get_", "has_"))):
            ask = getattr(inspector, name)
            parameters = inspect_signature(ask).parameters
            for schema in [None, "information_schema"] if "schema" in parameters else [None]:
                options = {"schema": schema} if schema else {}
                if "kind" in parameters:
                    options["kind"] = ObjectKind.ANY
                if "table_name" in parameters:
                    table = (inspector.get_table_names(schema) or inspector.get_view_names(schema))[0]
                    options["table_name"] = table
                if "table_names" in parameters:
                    options["table_names"] = [*inspector.get_table_names(schema), *inspector.get_view_names(schema)][:2]
                if "view_name" in parameters:
                    views = inspector.get_view_names(schema)
                    if not views:
                        continue
                    options["view_name"] = views[0]
                if "schema_name" in parameters:
                    options["schema_name"] = "v_monitor"
                for wanted in ("sequence_name", "index_name", "type_name"):
                    if wanted in parameters:
                        options[wanted] = "missing"
                answer = ask(**options)
                if "table_names" in parameters:
                    self.assertTrue(len(answer) == 2 and all(answer.values()), answer)
                elif name.startswith("has_"):
                    self.assertEqual(answer, name in ("has_table", "has_schema"), (name, schema))
                asked.add(name)
        self.assertGreater(len(asked), 25, asked)

    def test_named_tables_are_reflected_and_joined(self):
        only = MetaData()
        only.reflect(self.engine, only=["nodes", "sessions"])
        self.assertEqual(set(only.tables), {"nodes", "sessions"})
        joined = select(only.tables["nodes"].c.node_name).join(
            only.tables["sessions"], only.tables["nodes"].c.node_name == only.tables["sessions"].c.node_name
        )
        with self.engine.connect() as connection:
            self.assertIn(("node01",), connection.execute(joined).all())

    def test_rows_are_streamed(self):
        with self.engine.connect() as connection:
            numbers = connection.execution_options(stream_results=True, max_row_buffer=10).execute(
                text("SELECT * FROM generate_series(1, 100)")
            )
            self.assertEqual(numbers.scalars().all(), list(range(1, 101)))


class WithPsycopg(WithDriver, unittest.TestCase):
    driver = "psycopg"


class WithPsycopg2(WithDriver, unittest.TestCase):
    driver = "psycopg2"


if __name__ == "__main__":
    unittest.main()
