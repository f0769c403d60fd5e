"""Connects again and again, as fast as it goes, until standard input ends; prints how often, and what failed."""

import os
import sys
import threading

import psycopg
import vertica_python

PORTS = [int(port) for port in os.environ["SWITCHYARD_TEST_PORTS"].split(",")]
USER = os.environ["SWITCHYARD_TEST_USER"]
PASSWORD = os.environ["SWITCHYARD_TEST_PASSWORD"]
ended = threading.Event()
counts = {}
failures = []


def by_psycopg(first):
    ports = PORTS[first:] + PORTS[:first]
    hosts = ",".join("127.0.0.1" for _ in ports)
    with psycopg.connect(
        host=hosts,
        port=",".join(map(str, ports)),
        user=USER,
        password=PASSWORD,
        dbname="switchyard",
        options="-c connection_load_balance=on" if first else "",
    ) as connection:
        return connection.execute("SELECT node_name FROM current_session").fetchone()[0]


def by_vertica(first):
    ports = PORTS[first:] + PORTS[:first]
    with vertica_python.connect(
        host="127.0.0.1",
        port=ports[0],
        backup_server_node=[("127.0.0.1", port) for port in ports[1:]],
        user=USER,
        password=PASSWORD,
        database="switchyard",
        tlsmode="disable",
        connection_load_balance=bool(first),
    ) as connection:
        return connection.cursor().execute("SELECT node_name FROM current_session").fetchone()[0]


def work(connect, first):
    key = (connect.__name__, first)
    while not ended.is_set():
        try:
            connect(first)
            counts[key] = counts.get(key, 0) + 1
        except Exception as error:
            failures.append(f"{key}: {error!r}")


threads = [threading.Thread(target=work, args=(connect, first)) for connect in (by_psycopg, by_vertica) for first in (0, 1)]
for thread in threads:
    thread.start()
sys.stdin.read()
ended.set()
for thread in threads:
    thread.join()
assert len(counts) == len(threads), counts
print(sum(counts.values()), "connections")
for failure in failures[:10]:
    print(failure)
sys.exit(1 if failures else 0)
