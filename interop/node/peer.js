// node-spdy as a peer: `spdy` (its HTTP server) serves, `spdy-transport` (the connection below it) fetches, as the
// HTTP client of `spdy` fails on bodies. Contract: ../README.md.
'use strict'

const http = require('node:http')
const fs = require('node:fs')
const contract = require('./contract')
const fetch = require('./fetch')
const spdy = require('spdy')

const { verb, options, words } = contract.parseArguments(process.argv.slice(2), ['tls'])
const VERSIONS = ['2', '3', '3.1']

if (!VERSIONS.includes(options.version)) usage()
if (verb === 'serve') serve(options)
else if (verb === 'fetch' && words.length === 1) fetch(options, words[0])
else usage()

function usage () {
  process.stderr.write('usage: peer.js serve --version 2|3|3.1 [--tls --cert FILE --key FILE]\n' +
    '       peer.js fetch --version 2|3|3.1 [--tls] --port PORT SCENARIO\n')
  process.exit(2)
}

function serve ({ version, tls, cert, key }) {
  const protocol = `spdy/${version}`
  // `protocol` is prior knowledge; `plain: true` would take 3.1 for 3 until the client shows otherwise.
  const server = tls
    ? spdy.createServer({ cert: fs.readFileSync(cert), key: fs.readFileSync(key), spdy: { protocols: [protocol] } })
    : spdy.server.create(http.Server, { spdy: { protocol } })
  server.on('request', answer)
  server.listen(0, '127.0.0.1', () => contract.announce(server.address().port))
}

function answer (request, response) {
  // A reset ends a stream with an error; it is the client's right.
  request.on('error', () => {})
  response.on('error', () => {})
  const bytes = /^\/bytes\/(\d{1,8})$/.exec(request.url)
  if (request.url === '/small') send(response, contract.SMALL)
  else if (bytes) send(response, contract.pattern(Number(bytes[1])))
  else if (request.url === '/upload') receive(request, response)
  else if (request.url === '/push') push(response)
  else if (request.url === '/goaway') goAway(request, response)
  else if (request.url === '/endless') endless(request, response)
  else {
    response.writeHead(404)
    response.end()
  }
}

function send (response, body) {
  response.writeHead(200, { 'content-length': String(body.length) })
  response.end(body)
}

function receive (request, response) {
  const chunks = []
  request.on('data', chunk => chunks.push(chunk))
  request.on('end', () => send(response, Buffer.from(contract.receipt(Buffer.concat(chunks)))))
}

function push (response) {
  const pushed = response.push('/pushed', { response: { 'content-length': String(contract.PUSHED) } }, () => {})
  pushed.on('error', () => {})
  pushed.end(contract.pattern(contract.PUSHED))
  send(response, contract.PUSHER)
}

// Bodies of several writes go to the stream: on Node 20 the second `response.write` of `spdy` completes twice
// (handle-thing answers a write later than Node now expects), which destroys the response.
function goAway (request, response) {
  response.writeHead(200, { 'content-length': String(contract.LARGE) })
  const stream = request.spdyStream
  const step = 20_000
  let at = 0
  const next = () => {
    if (at === contract.LARGE) return stream.end()
    stream.write(contract.pattern(step, at))
    at += step
    setTimeout(next, 10)
  }
  // The connection's `end` is its GOAWAY: what is open may finish.
  stream.connection.end()
  next()
}

function endless (request, response) {
  response.writeHead(200, {})
  const stream = request.spdyStream
  let reset = false
  stream.connection.on('frame', frame => {
    if (frame.type !== 'RST' || frame.id !== stream.id || reset) return
    reset = true
    process.stdout.write('cancelled\n')
  })
  stream.once('close', () => { reset = true })
  const step = 16_384
  let at = 0
  const next = () => {
    if (reset) return
    if (at >= contract.ENDLESS_MAX) return stream.end()
    stream.write(contract.pattern(step, at), () => setImmediate(next))
    at += step
  }
  next()
}
