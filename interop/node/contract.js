// What every peer of the interop matrix agrees on: the resources a server has, how a body is made, how a run
// ends. See ../README.md for the contract itself.
'use strict'

const assert = require('node:assert')
const zlib = require('node:zlib')

/** Modulus of the pattern: byte i of a body is i % 251. */
const MODULUS = 251
/** Bytes of the large bodies. */
const LARGE = 400_000
/** Bytes of the body during which a client says GOAWAY: more than any peer's window, so that it is in flight then. */
const HUGE = 30_000_000
/** Bytes of the pushed resource. */
const PUSHED = 1_000
/** Bytes after which /endless gives up. */
const ENDLESS_MAX = 64 << 20
const SMALL = Buffer.from('hello, spdy\n')
const PUSHER = Buffer.from('pusher\n')
/** Streams of `parallel100`; stream i asks for `PARALLEL_BASE + i` bytes. */
const PARALLEL = 100
const PARALLEL_BASE = 5_000
/** Milliseconds that a client's run may take. */
const LIMIT_MS = 40_000
/** Milliseconds that one answer may be silent: a peer that stalls is found before the whole run's time is up. */
const ANSWER_MS = 8_000
/** Milliseconds that a push may come after its page. */
const PUSH_MS = 8_000

const TABLE = Buffer.alloc(MODULUS * 264, Buffer.from(Array.from({ length: MODULUS }, (_, i) => i)))

/** The pattern's bytes `from`, …, `from + length - 1`. */
function pattern (length, from = 0) {
  const start = from % MODULUS
  if (start + length <= TABLE.length) return TABLE.subarray(start, start + length)
  const bytes = Buffer.alloc(length)
  for (let at = 0; at < length;) {
    at += TABLE.copy(bytes, at, (start + at) % MODULUS)
  }
  return bytes
}

/** What /upload answers to `body`: its length and its CRC-32/IEEE. */
function receipt (body) {
  const crc = zlib.crc32(body)
  return `${body.length} ${crc.toString(16).padStart(8, '0')}`
}

/** Compares bytes as they come with what they should be, so that a fault is found at its first byte. */
class Expect {
  /** @param {Buffer} body all of it */
  constructor (what, body) {
    this.what = what
    this.body = body
    this.seen = 0
  }

  take (chunk) {
    const want = this.body.subarray(this.seen, this.seen + chunk.length)
    if (chunk.compare(want) !== 0) {
      let at = 0
      while (at < want.length && want[at] === chunk[at]) at++
      throw new Error(`${this.what}: byte ${this.seen + at} is ${chunk[at]}, not ${want[at]}`)
    }
    this.seen += chunk.length
  }

  end () {
    if (this.seen !== this.body.length) {
      throw new Error(`${this.what}: ended after ${this.seen} of ${this.body.length} bytes`)
    }
    return this.seen
  }
}

/** A scenario that the library has no means for. */
class Cannot extends Error {}

/** Ends the process as the contract says; `run` resolves to the detail after `ok`. */
function conclude (run) {
  const end = (code, line) => process.stdout.write(line.replace(/\s+/g, ' ').trim() + '\n', () => process.exit(code))
  const fail = error => error instanceof Cannot
    ? end(3, `cannot ${error.message}`)
    : end(1, `fail ${error && error.message ? error.message : error}`)
  setTimeout(() => end(1, `fail no end after ${LIMIT_MS / 1000} s`), LIMIT_MS)
  process.on('uncaughtException', fail)
  run.then(detail => end(0, `ok ${detail}`), fail)
}

/** Says where the server listens, and lets it live until standard input ends. */
function announce (port) {
  process.stdout.write(`listening ${port}\n`)
  process.stdin.on('end', () => process.exit(0)).on('error', () => process.exit(0)).resume()
  process.on('SIGTERM', () => process.exit(0))
}

/** `VERB --name value --flag word …` as `{ verb, options, words }`. */
function parseArguments (list, flags) {
  const [verb, ...rest] = list
  const options = {}
  const words = []
  while (rest.length > 0) {
    const word = rest.shift()
    if (!word.startsWith('--')) words.push(word)
    else if (flags.includes(word.slice(2))) options[word.slice(2)] = true
    else {
      assert(rest.length > 0, `${word} needs a value`)
      options[word.slice(2)] = rest.shift()
    }
  }
  return { verb, options, words }
}

module.exports = {
  LARGE, PUSHED, ENDLESS_MAX, SMALL, PUSHER, PARALLEL, PARALLEL_BASE, HUGE, ANSWER_MS, PUSH_MS, Expect, Cannot,
  announce, conclude, parseArguments, pattern, receipt
}
