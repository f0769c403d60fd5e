// What scripts on node-postgres do, against the server that the PG* variables name.
"use strict";

const assert = require("node:assert/strict");
const { after, before, test } = require("node:test");
const { Client, Pool } = require("pg");
const Cursor = require("pg-cursor");

let client;

before(async () => {
  client = new Client();
  await client.connect();
});

after(() => client.end());

test("a simple query has rows, fields and a tag", async () => {
  const result = await client.query("SELECT node_name, node_id, node_state FROM nodes");
  assert.equal(result.command, "SELECT");
  assert.equal(result.rowCount, 1);
  assert.deepEqual(result.fields.map((field) => [field.name, field.dataTypeID]),
    [["node_name", 1043], ["node_id", 20], ["node_state", 1043]]);
  assert.equal(result.rows[0].node_name, "node01");
  const created = await client.query("CREATE SUBCLUSTER made; DROP SUBCLUSTER made");
  assert.deepEqual(created.map((one) => one.command), ["CREATE", "DROP"]);
});

test("parameters are bound", async () => {
  const text = "SELECT $1::text AS text, $2::int AS number, $3::bool AS truth, $4::text[] AS list, $5::text AS none";
  const { rows } = await client.query(text, ["it's", 7, true, ["a", "b\"c"], null]);
  assert.deepEqual(rows, [{ text: "it's", number: 7, truth: true, list: ["a", "b\"c"], none: null }]);
  const found = await client.query("SELECT node_name FROM nodes WHERE node_name = ANY ($1)", [["node01", "other"]]);
  assert.equal(found.rowCount, 1);
  const array = await client.query({ text: "SELECT 1 AS a, 2 AS a", rowMode: "array" });
  assert.deepEqual(array.rows, [[1, 2]]);
});

test("a named statement is prepared once", async () => {
  for (const [name, count] of [["node01", 1], ["other", 0], ["node01", 1]]) {
    const query = { name: "by-name", text: "SELECT node_id FROM nodes WHERE node_name = $1", values: [name] };
    assert.equal((await client.query(query)).rowCount, count);
  }
});

test("values of many types are read, as text and binary", async () => {
  const text = "SELECT 1::int2 AS small, 2::int4 AS number, 1.5::float8 AS float, true AS truth, 'x'::text AS text, " +
    "TIMESTAMP '2026-01-02 03:04:05' AS at, now() AS now, ARRAY['a'] AS texts, ARRAY[1, 2]::int4[] AS numbers";
  for (const binary of [false, true]) {
    const { rows: [row] } = await client.query({ text, binary });
    assert.deepEqual([row.small, row.number, row.float, row.truth, row.text], [1, 2, 1.5, true, "x"]);
    assert.ok(row.at instanceof Date && row.now instanceof Date);
    assert.deepEqual([row.texts, row.numbers], [["a"], [1, 2]]);
  }
});

test("a transaction is undone", async () => {
  await client.query("BEGIN");
  await client.query("CREATE SUBCLUSTER undone");
  await assert.rejects(client.query("CREATE SUBCLUSTER undone"), { code: "42710" });
  await assert.rejects(client.query("SELECT 1"), { code: "25P02" });
  await client.query("ROLLBACK");
  assert.equal((await client.query("SELECT 1 FROM subclusters WHERE NOT is_default")).rowCount, 0);
});

test("errors have their code and place", async () => {
  await assert.rejects(client.query("SELECT * FROM missing"), { code: "42P01", position: "15", severity: "ERROR" });
  await assert.rejects(client.query("SELECT $1::int", ["no number"]), { code: "22P02" });
  await assert.rejects(client.query("SELEC 1"), { code: "42601" });
  assert.equal((await client.query("SELECT 1 AS one")).rows[0].one, 1);
});

test("a notice is heard", async () => {
  const heard = new Promise((resolve) => client.once("notice", resolve));
  await client.query("DROP SUBCLUSTER IF EXISTS missing");
  assert.equal((await heard).message, "Nothing was dropped");
});

test("a pool serves many at once", async () => {
  const pool = new Pool({ max: 3, application_name: "pool", statement_timeout: 60000 });
  const sums = Array.from({ length: 30 }, (_, number) => pool.query("SELECT $1::int + 1 AS sum", [number]));
  assert.deepEqual((await Promise.all(sums)).map(({ rows }) => rows[0].sum), Array.from({ length: 30 }, (_, n) => n + 1));
  const lent = await pool.connect();
  assert.equal((await lent.query("SHOW application_name")).rows[0].application_name, "pool");
  lent.release();
  await pool.end();
});

test("a cursor reads in portions", async () => {
  const cursor = client.query(new Cursor("SELECT attname FROM pg_attribute WHERE attnum > $1", [0]));
  assert.equal((await cursor.read(10)).length, 10);
  assert.equal((await cursor.read(20)).length, 20);
  await cursor.close();
  assert.equal((await client.query("SELECT 2 AS two")).rows[0].two, 2);
});
