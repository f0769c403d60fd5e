// What programs that use vertica-nodejs do with the three members of a quickstart. This driver does not ask for load
// balancing: it stays with the member it calls, and calls another when there is no such host.
'use strict'

const assert = require('node:assert')
const test = require('node:test')

const { Client } = require('vertica-nodejs')

const ports = process.env.VERTICA_TEST_PORTS.split(',').map(Number)
const nodes = ['v_switchyard_node0001', 'v_switchyard_node0002', 'v_switchyard_node0003']

async function withClient(given, run) {
  const client = new Client({
    host: '127.0.0.1',
    port: ports[0],
    user: process.env.VERTICA_TEST_USER,
    password: process.env.VERTICA_TEST_PASSWORD,
    database: 'switchyard',
    ...given,
  })
  await client.connect()
  try {
    return await run(client)
  } finally {
    await client.end()
  }
}

const node = async (client, ...values) => {
  const text = 'SELECT node_name FROM current_session' + (values.length ? ' WHERE client_type = ?' : '')
  return (await client.query(text, values.length ? values : undefined)).rows[0].node_name
}

test('a client stays with the member it calls', async () => {
  for (const [place, port] of ports.entries()) {
    for (const values of [[], ['Node.js Driver']]) {
      for (const asking of [{}, { connection_load_balance: true }]) {
        assert.strictEqual(await withClient({ port, ...asking }, (client) => node(client, ...values)), nodes[place])
      }
    }
  }
})

test('every member answers with the workload that is named', async () => {
  for (const port of ports) {
    await withClient({ port, workload: 'analytics' }, async (client) => {
      assert.deepStrictEqual((await client.query('SHOW WORKLOAD')).rows, [{ name: 'workload', setting: 'analytics' }])
    })
  }
})

test('an error in the middle of prepared use leaves the client in step', async () => {
  for (const port of ports) {
    await withClient({ port }, async (client) => {
      for (let use = 0; use < 2; use++) {
        await assert.rejects(client.query('SELECT ? FROM missing', ['x']), { code: '42V01' })
        const { rows } = await client.query('SELECT CAST(? AS bigint) AS i', [use])
        assert.deepStrictEqual(rows, [{ i: use }])
      }
    })
  }
})

test('another member is called when the first has no such name', () =>
  withClient({ host: 'nowhere.invalid', backup_server_node: `127.0.0.1:${ports[2]}` }, async (client) => {
    assert.strictEqual(await node(client), nodes[2])
  }))

test('a wrong password is refused by every member', async () => {
  await withClient({}, (client) => client.query("CREATE USER vera IDENTIFIED BY 'right'"))
  for (const port of ports) {
    const wrong = withClient({ port, user: 'vera', password: 'wrong' }, node)
    await assert.rejects(wrong, { code: '28000', message: /^Authentication failed for username / })
    assert.ok(await withClient({ port, user: 'vera', password: 'right' }, node))
  }
})
