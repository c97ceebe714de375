// The client half of peer.js: one scenario over one connection of `spdy-transport`.
'use strict'

const net = require('node:net')
const tls = require('node:tls')
const contract = require('./contract')
const transport = require('spdy-transport')

const { Cannot, Expect, LARGE, SMALL, pattern } = contract

const SCENARIOS = {
  small: async peer => `${await peer.get('/small', SMALL)} bytes`,
  get400k: async peer => `${await peer.get(`/bytes/${LARGE}`, pattern(LARGE))} bytes`,
  post400k: async peer => {
    const body = pattern(LARGE)
    await peer.exchange('POST', '/upload', Buffer.from(contract.receipt(body)), { body })
    return `${LARGE} bytes sent`
  },
  parallel100: async peer => {
    const each = Array.from({ length: contract.PARALLEL }, (_, i) => {
      const length = contract.PARALLEL_BASE + i
      return peer.get(`/bytes/${length}`, pattern(length))
    })
    return `${(await Promise.all(each)).reduce((a, b) => a + b)} bytes`
  },
  push,
  cancel,
  goaway,
  'goaway-client': goawayClient
}

module.exports = function fetch (options, scenario) {
  const run = SCENARIOS[scenario]
  contract.conclude(run
    ? connect(options).then(run)
    : Promise.reject(new Cannot(`node-spdy has nothing like ${scenario}`)))
}

async function connect ({ version, port, tls: secure }) {
  const protocol = `spdy/${version}`
  const address = { host: '127.0.0.1', port: Number(port) }
  const socket = secure
    ? tls.connect({ ...address, rejectUnauthorized: false, ALPNProtocols: [protocol] })
    : net.connect(address)
  await new Promise((resolve, reject) => socket.once(secure ? 'secureConnect' : 'connect', resolve).once('error', reject))
  if (secure && socket.alpnProtocol !== protocol) {
    throw new Error(`ALPN gave ${socket.alpnProtocol || 'nothing'}, not ${protocol}`)
  }
  socket.setNoDelay(true)
  return new Peer(socket, Number(version))
}

class Peer {
  constructor (socket, version) {
    this.connection = transport.connection.create(socket, { protocol: 'spdy', isServer: false })
    this.broken = new Promise((resolve, reject) => {
      this.connection.on('error', reject)
      socket.on('error', reject)
      // Scenarios end before the connection does, but for those that say so.
      socket.on('close', () => this.mayClose || reject(new Error('the server closed the connection')))
    })
    this.broken.catch(() => {})
    this.mayClose = false
    this.goneAway = new Promise(resolve => this.connection.on('frame', f => f.type === 'GOAWAY' && resolve(f)))
    this.connection.start(version)
  }

  open (method, path, onStream = () => {}) {
    const stream = this.connection.request({ method, path, host: '127.0.0.1', headers: { 'user-agent': 'spdy-transport' } })
    onStream(stream)
    return stream
  }

  get (path, want, hooks) {
    return this.exchange('GET', path, Buffer.from(want), hooks)
  }

  /** One request and its whole answer, which has to be `want`. */
  exchange (method, path, want, { body, onStream, onData, onFinished } = {}) {
    const expect = new Expect(path, want)
    const answered = new Promise((resolve, reject) => {
      const progress = () => `after ${expect.seen} of ${want.length} bytes`
      const silent = setTimeout(() => reject(new Error(`${path}: silent for ${contract.ANSWER_MS / 1000} s ${progress()}`)), contract.ANSWER_MS)
      const stream = this.open(method, path, onStream)
      let status = 0
      stream.on('error', error => reject(new Error(`${path}: ${error.message}`)))
      stream.on('response', code => { status = code })
      stream.on('data', chunk => {
        silent.refresh()
        try { expect.take(chunk) } catch (error) { return reject(error) }
        if (onData) onData(stream)
      })
      stream.on('end', () => {
        if (status !== 200) return reject(new Error(`${path}: status ${status || 'missing'}`))
        try { resolve(expect.end()) } catch (error) { reject(error) }
        if (onFinished) onFinished()
      })
      stream.on('close', error => error && reject(new Error(`${path}: ${error.message} ${progress()}, without FIN`)))
      if (body) stream.end(body)
    })
    return Promise.race([answered, this.broken])
  }
}

async function push (peer) {
  const expect = new Expect('/pushed', pattern(contract.PUSHED))
  let offered
  const pushed = new Promise((resolve, reject) => { offered = { resolve, reject } })
  pushed.catch(() => {})
  const onStream = stream => stream.on('pushPromise', promised => {
    if (promised.path !== '/pushed') return offered.reject(new Error(`pushed ${promised.path}`))
    promised.on('error', offered.reject)
    promised.on('data', chunk => {
      try { expect.take(chunk) } catch (error) { offered.reject(error) }
    })
    promised.on('end', () => {
      try { offered.resolve(expect.end()) } catch (error) { offered.reject(error) }
    })
  })
  await peer.get('/push', contract.PUSHER, { onStream })
  const late = new Error(`no push within ${contract.PUSH_MS / 1000} s of its page`)
  setTimeout(() => offered.reject(late), contract.PUSH_MS)
  return `${await Promise.race([pushed, peer.broken])} bytes pushed`
}

async function cancel (peer) {
  await Promise.race([peer.broken, new Promise((resolve, reject) => {
    const stream = peer.open('GET', '/endless')
    stream.on('error', reject)
    stream.once('data', () => stream.abort('CANCEL', resolve))
  })])
  await peer.get('/small', SMALL)
  return 'cancelled, then /small'
}

async function goaway (peer) {
  peer.mayClose = true
  let finished = false
  const body = peer.get('/goaway', pattern(LARGE), { onFinished: () => { finished = true } })
  await Promise.race([peer.goneAway, body])
  if (finished) throw new Error('no GOAWAY before the end of the body')
  const refused = await new Promise(resolve => {
    peer.connection.request({ method: 'GET', path: '/small', host: '127.0.0.1' }, resolve)
  })
  if (!refused) throw new Error('the library opened a stream after GOAWAY')
  return `${await body} bytes past GOAWAY, further streams refused`
}

async function goawayClient (peer) {
  peer.mayClose = true
  let said = false
  const onData = () => {
    if (said) return
    said = true
    peer.connection.end()
  }
  const length = await peer.get(`/bytes/${contract.HUGE}`, pattern(contract.HUGE), { onData })
  return `${length} bytes, most of them after GOAWAY`
}
