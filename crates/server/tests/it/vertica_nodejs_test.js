// What programs that use vertica-nodejs do, against the server that the VERTICA_TEST_* variables name.
'use strict'

const assert = require('node:assert')
const test = require('node:test')

const { Client } = require('vertica-nodejs')

function options(given = {}) {
  return {
    host: '127.0.0.1',
    port: Number(process.env.VERTICA_TEST_PORT),
    user: process.env.VERTICA_TEST_USER,
    password: process.env.VERTICA_TEST_PASSWORD,
    database: 'switchyard',
    ...given,
  }
}

async function withClient(given, run) {
  const client = new Client(options(given))
  await client.connect()
  try {
    return await run(client)
  } finally {
    await client.end()
  }
}

const rows = async (client, ...query) => (await client.query(...query)).rows

test('rows come back by the simple protocol', () =>
  withClient({}, async (client) => {
    const found = await rows(client, "SELECT CAST(7 AS bigint) AS i, true AS b, 1.5::float8 AS f, 'x' AS t, NULL AS n")
    assert.deepStrictEqual(found, [{ i: 7, b: true, f: 1.5, t: 'x', n: null }])
  }))

test('values are bound', () =>
  withClient({}, async (client) => {
    for (const number of [1, 2, 3]) {
      const found = await rows(client, 'SELECT CAST(? AS bigint) AS i, ?::varchar AS t', [number, 'it\'s'])
      assert.deepStrictEqual(found, [{ i: number, t: "it's" }])
    }
    const named = { name: 'by name', text: 'SELECT node_state FROM nodes WHERE node_name = ?', values: ['node01'] }
    for (let use = 0; use < 3; use++) {
      assert.deepStrictEqual(await rows(client, named), [{ node_state: 'UP' }])
    }
    const when = new Date('2024-02-29T13:14:15.123Z')
    const found = await rows(client, "SELECT ?::timestamptz = timestamptz '2024-02-29 13:14:15.123+00' AS same", [when])
    assert.deepStrictEqual(found, [{ same: true }])
    assert.deepStrictEqual(await rows(client, 'SELECT CAST(? AS bigint) AS i', [null]), [{ i: null }])
  }))

test('an error has its code, and the client goes on', () =>
  withClient({}, async (client) => {
    for (const values of [undefined, ['x']]) {
      const text = values ? 'SELECT * FROM missing WHERE a = ?' : 'SELECT * FROM missing'
      for (let use = 0; use < 2; use++) {
        await assert.rejects(client.query(text, values), { code: '42V01', severity: 'ERROR' })
        assert.deepStrictEqual(await rows(client, 'SELECT CAST(1 AS bigint) AS i'), [{ i: 1 }])
      }
    }
    await assert.rejects(client.query("CREATE ROUTING RULE r ROUTTE '10.0.0.0/8' TO g"), { code: '42601', position: '23' })
  }))

// The next statement is sent as soon as the error is read: there is no pause in which anything could be made up for.
test('errors in the middle of prepared use leave the next statements their own rows', () =>
  withClient({}, async (client) => {
    const failing = [
      ['22P02', 'SELECT ?::int AS x', ['abc']],
      ['22012', 'SELECT 1 / ?::int AS x', [0]],
      ['22P02', { name: 'kept', text: 'SELECT ?::int AS x', values: ['abc'] }],
      ['42V01', 'SELECT * FROM missing WHERE a = ?', ['x']],
    ]
    for (const [code, ...query] of failing) {
      for (let use = 0; use < 2; use++) {
        await assert.rejects(client.query(...query), { code })
        for (const number of [1, 2, 3]) {
          assert.deepStrictEqual(await rows(client, `SELECT CAST(${number} AS bigint) AS i`), [{ i: number }])
        }
        await assert.rejects(client.query(...query), { code })
        assert.deepStrictEqual(await rows(client, 'SELECT CAST(? AS bigint) AS i', [4]), [{ i: 4 }])
      }
    }
    const after = { name: 'kept', text: 'SELECT ?::int AS x', values: [5] }
    assert.deepStrictEqual(await rows(client, after), [{ x: 5 }])
  }))

test('statements change the catalog', () =>
  withClient({}, async (client) => {
    assert.strictEqual((await client.query('CREATE SUBCLUSTER from_node')).command, 'CREATE')
    const text = 'SELECT subcluster_name FROM subclusters WHERE subcluster_name = ?'
    assert.deepStrictEqual(await rows(client, text, ['from_node']), [{ subcluster_name: 'from_node' }])
  }))

test('the session is what the client said', () =>
  withClient({ client_label: 'a label', workload: '' }, async (client) => {
    const [told] = await rows(client, 'SELECT client_type, client_label, client_version FROM current_session')
    assert.deepStrictEqual(told, { client_type: 'Node.js Driver', client_label: 'a label', client_version: '1.1.4' })
    assert.deepStrictEqual(await rows(client, 'SHOW autocommit'), [{ name: 'autocommit', setting: 'off' }])
  }))

test('a wrong password is refused', async () => {
  const client = new Client(options({ password: 'wrong' }))
  await assert.rejects(client.connect(), { code: '28000', message: /^Authentication failed for username / })
})
