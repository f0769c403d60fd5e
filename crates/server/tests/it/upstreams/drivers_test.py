"""Drivers of Python on a database behind a member."""

import asyncio
import os

import asyncpg
import psycopg
import sqlalchemy
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

URL = os.environ["TEST_URL"]


def pipeline():
    with psycopg.connect(URL, autocommit=True) as connection:
        connection.execute("CREATE TABLE p (a int)")
        with connection.pipeline():
            cursors = [connection.execute("INSERT INTO p VALUES (%s) RETURNING a", (n,)) for n in range(100)]
            shown = connection.execute("SHOW WORKLOAD")
            assert [cursor.fetchone()[0] for cursor in cursors] == list(range(100))
            assert shown.fetchone() == ("workload", "")
        with connection.cursor() as cursor:
            with cursor.copy("COPY p FROM STDIN") as copy:
                for n in range(1000):
                    copy.write_row((n,))
            assert cursor.execute("SELECT count(*) FROM p").fetchone() == (1100,)
        # Prepared by the driver after some executions, and used on.
        for n in range(20):
            assert connection.execute("SELECT %s::int + 1", (n,), prepare=True).fetchone() == (n + 1,)
        try:
            with connection.pipeline():
                connection.execute("SELECT 1 / 0")
                connection.execute("SELECT 1")
        except psycopg.errors.DivisionByZero:
            pass
        assert connection.execute("SELECT 1").fetchone() == (1,)


async def asynchronous():
    connection = await asyncpg.connect(URL, password=os.environ["PGPASSWORD"])
    async with connection.transaction():
        rows = [row async for row in connection.cursor("SELECT g FROM generate_series(1, 500) g")]
        assert len(rows) == 500
    await connection.executemany("INSERT INTO p VALUES ($1)", [(n,) for n in range(100)])
    heard = asyncio.Queue()
    await connection.add_listener("channel", lambda *message: heard.put_nowait(message[-1]))
    await connection.execute("NOTIFY channel, 'hello'")
    assert await asyncio.wait_for(heard.get(), 30) == "hello"
    assert await connection.fetchval("SELECT $1::text[]", ["a", "b"]) == ["a", "b"]
    await connection.close()


class Base(DeclarativeBase):
    pass


class Thing(Base):
    __tablename__ = "things"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]


def objects():
    engine = sqlalchemy.create_engine(URL.replace("postgresql:", "postgresql+psycopg:"))
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        session.add_all([Thing(name="a"), Thing(name="b")])
        session.commit()
        assert [thing.name for thing in session.query(Thing).order_by(Thing.id)] == ["a", "b"]
        session.query(Thing).delete()
        session.rollback()
        assert session.query(Thing).count() == 2


pipeline()
asyncio.run(asynchronous())
objects()
