// What node's SPDY costs (spdy-transport, under node-spdy): the three loads of ../bench, through a client and a server in
// memory, each for a second.
//
//     node bench.js HEADS.json
'use strict'

const assert = require('node:assert')
const fs = require('node:fs')
const { Duplex } = require('node:stream')
const transport = require('spdy-transport')

const SMALL_FRAMES = 10_000
const SMALL_LEN = 100
const EXCHANGES = 100
const DATA_FRAMES = 512
const DATA_LEN = 16 << 10

/** Two ends of a connection in memory. */
function wires () {
  const ends = [0, 1].map(mine => {
    const end = new Duplex({
      read () {
        const taken = end.taken
        end.taken = null
        if (taken) taken()
      },
      write (chunk, encoding, done) {
        const other = ends[1 - mine]
        if (other.push(chunk)) done()
        else other.taken = done
      }
    })
    end.taken = null
    return end
  })
  return ends
}

function connect (onStream) {
  const [near, far] = wires()
  const options = { protocol: 'spdy', windowSize: 1 << 20 }
  const client = transport.connection.create(near, { ...options, isServer: false })
  const server = transport.connection.create(far, { ...options, isServer: true })
  for (const end of [client, server]) {
    end.on('error', error => { throw error })
    end.start(3.1)
  }
  server.on('stream', onStream)
  return { client, server }
}

/** A pair between which `count` frames of `length` bytes go up on a stream of their own. */
function uploads (count, length) {
  const { client, server } = connect(stream => {
    let seen = 0
    stream.respond(200, {})
    stream.on('data', chunk => { seen += chunk.length })
    stream.on('end', () => {
      assert.equal(seen, count * length)
      stream.end()
    })
  })
  let frames = 0
  server.on('frame', frame => { if (frame.type === 'DATA') frames++ })
  const body = Buffer.alloc(length)
  return async () => {
    frames = 0
    await new Promise((resolve, reject) => {
      const stream = client.request({ method: 'POST', path: '/', host: 'localhost', headers: {} })
      stream.on('error', reject)
      stream.on('end', resolve).resume()
      let left = count
      const more = () => {
        while (left > 0) {
          left--
          if (left === 0) return stream.end(body)
          if (!stream.write(body)) return stream.once('drain', more)
        }
      }
      more()
    })
    assert(frames >= count, `${frames} of ${count} frames`)
  }
}

function filled (fields, i) {
  return Object.fromEntries(Object.entries(fields)
    .filter(([name]) => !name.startsWith(':'))
    .map(([name, value]) => [name, value.replace('{}', i)]))
}

/** A pair between which requests are asked and answered by their heads alone. */
function exchanges ({ request, response }) {
  let answered = 0
  const { client } = connect(stream => {
    stream.respond(200, filled(response, answered++))
    stream.resume()
    stream.end()
  })
  let next = 0
  return () => Promise.all(Array.from({ length: EXCHANGES }, () => new Promise((resolve, reject) => {
    const i = next++
    const stream = client.request({
      method: 'GET', path: request[':path'].replace('{}', i), host: request[':host'], headers: filled(request, i)
    })
    stream.on('error', reject)
    stream.on('response', (status, headers) => {
      if (status !== 200 || headers.server !== response.server) reject(new Error('not the response that was sent'))
    })
    stream.on('end', resolve).resume()
    stream.end()
  })))
}

/** Runs `work` until a second has passed, after a fifth of one for nothing; each run is `units`. */
async function rate (units, work) {
  const until = async ms => {
    const start = process.hrtime.bigint()
    let runs = 0
    let passed
    do {
      await work()
      runs++
      passed = Number(process.hrtime.bigint() - start) / 1e6
    } while (passed < ms)
    return runs * units / passed * 1e3
  }
  await until(200)
  return until(1_000)
}

async function main () {
  const heads = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'))
  const result = {
    frames: await rate(SMALL_FRAMES, uploads(SMALL_FRAMES, SMALL_LEN)),
    blocks: await rate(2 * EXCHANGES, exchanges(heads)),
    bytes: await rate(DATA_FRAMES * DATA_LEN, uploads(DATA_FRAMES, DATA_LEN))
  }
  console.log(JSON.stringify(result))
}

main().catch(error => {
  console.error(error)
  process.exit(1)
})
