"""Commits as fast as it goes by drivers that know all members, until standard input ends, whatever breaks meanwhile.

Prints a line for each commit that was acknowledged, with the driver's name, and ends with an error for what no fault
explains."""

import os
import sys
import threading

import psycopg
import vertica_python

HOSTS = [(host, int(port)) for host, port in (place.rsplit(":", 1) for place in os.environ["SWITCHYARD_TEST_HOSTS"].split(","))]
USER = os.environ["SWITCHYARD_TEST_USER"]
PASSWORD = os.environ["SWITCHYARD_TEST_PASSWORD"]
# A member was faster too often; etcd is away or slow; the answer got lost; the member stops or drains; it is not there.
EXPECTED = {"40001", "58030", "08007", "57P01", "57P03"}
ended = threading.Event()
acknowledged = []
failures = []


class ByPsycopg:
    def __init__(self, first):
        hosts = HOSTS[first:] + HOSTS[:first]
        self.connection = psycopg.connect(
            host=",".join(host for host, _ in hosts),
            port=",".join(str(port) for _, port in hosts),
            user=USER,
            password=PASSWORD,
            dbname="switchyard",
            autocommit=True,
            connect_timeout=3,
            tcp_user_timeout=5000,
        )

    def run(self, statement):
        self.connection.execute(statement)

    def close(self):
        self.connection.close()


class ByVertica:
    def __init__(self, first):
        hosts = HOSTS[first:] + HOSTS[:first]
        self.connection = vertica_python.connect(
            host=hosts[0][0],
            port=hosts[0][1],
            backup_server_node=hosts[1:],
            user=USER,
            password=PASSWORD,
            database="switchyard",
            tlsmode="disable",
            connection_timeout=5,
        )

    def run(self, statement):
        self.connection.cursor().execute(statement)

    def close(self):
        self.connection.close()


def code_of(error):
    return getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)


def work(driver, first):
    number = 0
    while not ended.is_set():
        try:
            client = driver(first)
        except Exception as error:
            if code_of(error) not in EXPECTED | {None}:
                failures.append(f"{driver.__name__} cannot connect: {error!r}")
            continue
        while not ended.is_set():
            number += 1
            name = f"{driver.__name__.lower()}_{first}_{number}"
            try:
                client.run(f"CREATE SUBCLUSTER {name}")
            except Exception as error:
                # Without a code the connection broke, and with it what became of the statement is not known.
                code = code_of(error)
                if code not in EXPECTED | {None}:
                    failures.append(f"{name}: {error!r}")
                if code in {None, "57P01", "57P03"}:
                    break
            else:
                acknowledged.append(name)
        try:
            client.close()
        except Exception:
            pass


threads = [
    threading.Thread(target=work, args=(driver, first), daemon=True)
    for driver in (ByPsycopg, ByVertica)
    for first in range(len(HOSTS))
]
for thread in threads:
    thread.start()
sys.stdin.read()
ended.set()
for thread in threads:
    thread.join(timeout=60)
    if thread.is_alive():
        failures.append("a driver hangs")
for name in acknowledged:
    print(name)
for failure in failures[:10]:
    print(failure, file=sys.stderr)
sys.exit(1 if failures else 0)
