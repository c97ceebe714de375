// Races the peers of ../peers.toml against each other: what goes wrong between two of them as well is not ours. Prints every
// failure, and a table; nothing is held to it. The reasons in peers.toml say what was learnt so.
//
//     node pairs.js [--server NAME] [--client NAME] [--version V] [--transport tcp|tls] [--scenario S] [--repeat N]
'use strict'

const { spawn } = require('node:child_process')
const fs = require('node:fs')
const path = require('node:path')
const readline = require('node:readline')
const toml = require('smol-toml')
const contract = require('./contract')

const ROOT = path.join(__dirname, '..')
const { scenarios, peer: peers } = toml.parse(fs.readFileSync(path.join(ROOT, 'peers.toml'), 'utf8'))
const { options } = contract.parseArguments(['pairs', ...process.argv.slice(2)], [])
const CERT = ['--cert', path.join(ROOT, 'target/cert.pem'), '--key', path.join(ROOT, 'target/key.pem')]
/** Races at the same time: most of a run is waiting. */
const LANES = 2

const wanted = (option, value) => options[option] === undefined || options[option] === value

function races () {
  const all = []
  for (const server of peers.filter(p => p.roles.includes('server') && wanted('server', p.name))) {
    for (const client of peers.filter(p => p.roles.includes('client') && wanted('client', p.name))) {
      if (server.mapping !== client.mapping) continue
      const shared = name => server[name].filter(v => client[name].includes(v) && wanted(name.slice(0, -1), v))
      for (const version of shared('versions')) {
        for (const transport of shared('transports')) {
          for (const scenario of scenarios[server.mapping].filter(s => wanted('scenario', s))) {
            all.push({ server, client, version, transport, scenario })
          }
        }
      }
    }
  }
  return all
}

function start (peer, words, stdin) {
  const [program, ...first] = peer.command
  return spawn(program, [...first, ...words], { cwd: ROOT, stdio: [stdin, 'pipe', 'ignore'] })
}

/** One race; whether it went well, and the client's line. */
async function run ({ server, client, version, transport, scenario }) {
  const tls = transport === 'tls'
  const serving = start(server, ['serve', '--version', version, ...(tls ? ['--tls', ...CERT] : [])], 'pipe')
  serving.stdin.on('error', () => {})
  const ended = new Promise(resolve => serving.on('close', resolve))
  const said = []
  const heard = new Promise((resolve, reject) => {
    readline.createInterface({ input: serving.stdout }).on('line', line => { said.push(line); resolve() }).on('close', () => reject(new Error('the server did not start')))
  })
  try {
    await heard
    const port = said[0].replace('listening ', '')
    const fetching = start(client, ['fetch', '--version', version, ...(tls ? ['--tls'] : []), '--port', port, scenario], 'ignore')
    let line = ''
    fetching.stdout.on('data', chunk => { line += chunk })
    const code = await new Promise(resolve => fetching.on('close', resolve))
    if (code === 0 && scenario === 'cancel' && !await seen(said, 'cancelled')) {
      return { good: false, line: 'the server saw no reset' }
    }
    return { good: code === 0, line: line.trim() }
  } finally {
    serving.stdin.end()
    const slow = setTimeout(() => serving.kill('SIGKILL'), 2_000)
    await ended
    clearTimeout(slow)
  }
}

/** Whether the server has said so, or does within a second. */
async function seen (said, line) {
  for (let i = 0; i < 100 && !said.includes(line); i++) await new Promise(resolve => setTimeout(resolve, 10))
  return said.includes(line)
}

async function main () {
  const all = races()
  const marks = new Map()
  const queue = all.flatMap(race => Array.from({ length: Number(options.repeat || 1) }, () => race))
  const lane = async () => {
    for (let race = queue.shift(); race; race = queue.shift()) {
      const { good, line } = await run(race)
      const name = `${race.server.name} ← ${race.client.name}, ${race.version} ${race.transport}, ${race.scenario}`
      if (!good) console.log(`${name}: ${line}`)
      const row = `${race.server.name} ← ${race.client.name} | ${race.version}`
      const cells = marks.get(row) || new Map()
      const before = cells.get(race.scenario)
      const now = good ? '✓' : '✗'
      cells.set(race.scenario, before && before !== now ? '✓✗' : now)
      marks.set(row, cells)
    }
  }
  await Promise.all(Array.from({ length: LANES }, lane))
  for (const [mapping, names] of Object.entries(scenarios)) {
    const rows = [...marks].filter(([row]) => peers.find(p => row.startsWith(`${p.name} `)).mapping === mapping)
    if (rows.length === 0) continue
    console.log(`\n| server ← client | version | ${names.join(' | ')} |\n|---|---|${names.map(() => '---|').join('')}`)
    for (const [row, cells] of rows) console.log(`| ${row} | ${names.map(n => cells.get(n) || ' ').join(' | ')} |`)
  }
  console.log(`\n${all.length} races of peers`)
}

main()
