// A client of Shoal's protocol for Node 20 and without packages, written from app/swarm/PROTOCOL.md alone.
//   node --experimental-websocket client.mjs ws://HOST:PORT/v1/ws < group.json
// signs in with a new key, publishes the group, samples, and prints the answer and what it makes of each group that
// came. A group is task, model, completions, finished and rewards. cases.mjs runs it over app/swarm/conformance.
import { createHash, createPrivateKey, createPublicKey, randomBytes, sign, verify } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { inflateSync } from 'node:zlib'

export const un = text => Buffer.from(text, 'hex'), hex = bytes => Buffer.from(bytes).toString('hex')
export const join = (...parts) => Buffer.concat(parts.map(part => Buffer.from(part)))
export const hash = (...parts) => createHash('sha256').update(join(...parts)).digest()
const number = bytes => BigInt('0x' + hex(bytes))
const base32 = bytes => Array.from({ length: bytes.length * 8 / 5 }, (_, i) =>
  'abcdefghijklmnopqrstuvwxyz234567'[number(bytes) >> BigInt(bytes.length * 8 - 5 * i - 5) & 31n]).join('')
const der = (head, key, type) => ({ key: join(un(head), key), format: 'der', type })  // 70: Ed25519, 6e: X25519
export const secret = (seed, curve = '70') => createPrivateKey(der(`302e020100300506032b65${curve}04220420`, seed, 'pkcs8'))
export const open = (key, curve = '70') => createPublicKey(der(`302a300506032b65${curve}032100`, key, 'spki'))
export const publicOf = key => createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(12)
export const signed = (seed, bytes) => hex(sign(null, bytes, secret(seed)))

// OpenSSL takes small-order keys, which libsodium and this protocol refuse; so their y stand here.
const P = 2n ** 255n - 19n, y = bytes => number(Buffer.from(bytes).reverse()) % 2n ** 255n
const SMALL = [0n, 1n, P - 1n, ...['26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a'].map(one => y(un(one)))]
export const holds = (key, bytes, sig) => key.length === 32 && sig.length === 64 && y(key) < P &&
  ![key, sig.subarray(0, 32)].some(point => SMALL.includes(y(point) % P)) && verify(null, bytes, open(key), sig)

export const FORMULAS = {
  relay: one => 'relay-' + base32(hash('shoal-relay-v1\0', un(one.key)).subarray(0, 20)),
  hello: one => join('shoal-hello-v1\0', one.swarm, '\0', un(one.challenge), un(one.opening)),
  auth: one => join('sapo-auth-v2\0', one.swarm, '\0', one.relay, '\0', un(one.challenge), un(one.hello_sig)),
  group: one => hash('sapo-rollout-v2\0', one.swarm, '\0', un(one.pk), one.body),
  work: one => 256 - number(hash('sapo-pow\0', un(one.pk), one.relay, '\0', `${Math.floor(one.time_ms / 864e5)}`,
    '\0', one.pow)).toString(2).length,
}

const refuse = why => { throw new Error(why) }, attempt = (act, why) => { try { return act() } catch { refuse(why) } }
export function parse(bytes, whole = false) {  // JSON.parse takes a key that stands twice, and 1.0 for 1
  const text = attempt(() => new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes), 'not-json')
  const value = attempt(() => JSON.parse(text), 'not-json'), objects = []
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"\s*:?|[{}]|-?\d[-+.\deE]*/g))
    if (token === '{' || token === '}') token === '{' ? objects.push(new Set()) : objects.pop()
    else if (token[0] !== '"') whole && /[.eE]/.test(token) && refuse('wrong-shape')
    else {
      const said = JSON.parse(token.replace(/:$/, '')), keys = token.endsWith(':') ? objects.at(-1) : new Set()
      said.isWellFormed() && !keys.has(said) ? keys.add(said) : refuse('not-json')
    }
  return value
}

const within = (low, high) => value => Number.isInteger(value) && value >= low && value <= high
const text = form => value => typeof value === 'string' && form.test(value)
const list = form => value => Array.isArray(value) && value.length <= 16 && value.every(form)
const fits = form => value => value !== null && typeof value === 'object' && !Array.isArray(value) &&
  Object.keys({ ...value, ...form }).every(key => key in value && form[key]?.(value[key]))
const ENVELOPE = fits({ id: text(/^[0-9a-f]{64}$/), pk: text(/^[0-9a-f]{64}$/), sig: text(/^[0-9a-f]{128}$/),
  body: text(/^/), enc: text(/^(plain|zlib)$/) })
const BODY = fits({ v: within(1, 1), swarm: text(/^[a-z0-9][a-z0-9-]{2,63}$/), key_seq: within(1, 2 ** 53 - 1),
  created_ms: within(0, 2 ** 53 - 1),
  task: fits({ family: text(/^[a-z][a-z0-9_]{0,47}$/), level: within(0, 63), seed: within(0, 2 ** 53 - 1),
    index: within(0, 2 ** 20 - 1), version: text(/^(?=.{1,32}$)\d+(\.\d+){1,3}\/\d{1,6}$/) }),
  model: text(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}(\/[A-Za-z0-9][A-Za-z0-9._-]{0,95})?$/),
  completions: list(value => typeof value === 'string' && [...value].length <= 4096),
  finished: list(value => typeof value === 'boolean'), rewards: list(within(0, 1)) })

function bytesOf({ body, enc }) {
  if (enc !== 'zlib') return body.isWellFormed() ? Buffer.from(body) : refuse('not-json')
  const packed = Buffer.from(body, 'base64')
  try {
    const { buffer, engine } = inflateSync(packed, { info: true, maxOutputLength: 32768 })
    return packed.toString('base64') === body && engine.bytesWritten === packed.length ? buffer : refuse()
  } catch (error) { refuse(error.code === 'ERR_BUFFER_TOO_LARGE' ? 'too-large' : 'bad-encoding') }
}

export function group(envelope, swarm, now) {  // the body, when everything holds but what only the puzzle can tell
  const { id, pk, sig } = ENVELOPE(envelope) ? envelope : refuse('wrong-shape')
  const raw = bytesOf(envelope), digest = FORMULAS.group({ swarm, pk, body: raw })
  if (raw.length > 32768 || hex(digest) !== id) refuse(raw.length > 32768 ? 'too-large' : 'bad-id')
  if (!holds(un(pk), digest, un(sig))) refuse('bad-signature')
  const body = parse(raw, true)
  const { completions, finished, rewards, model, created_ms } = BODY(body) ? body : refuse('wrong-shape')
  const count = completions.length, right = rewards.filter(Boolean).length
  if (finished.length !== count || rewards.length !== count || rewards.some((reward, i) => reward && !finished[i]) ||
    (model === 'human' ? right !== 1 || count !== 1 : right === 0 || right === count)) refuse('wrong-shape')
  return body.swarm !== swarm ? refuse('other-swarm') : created_ms < now - 18e5 ? refuse('stale') :
    created_ms > now + 12e4 ? refuse('ahead') : body
}
export function seal(seed, swarm, body) {
  const pk = hex(publicOf(secret(seed))), digest = FORMULAS.group({ swarm, pk, body })
  return { id: hex(digest), pk, sig: signed(seed, digest), body, enc: 'plain' }
}
export function answer(seed, hello, opening) {  // `auth`, for a relay that has proved which one it is
  if (hello.relay !== FORMULAS.relay(hello) ||
    !holds(un(hello.key), FORMULAS.hello({ ...hello, opening }), un(hello.sig))) refuse('Not the relay of this id.')
  const pk = hex(publicOf(secret(seed))), sig = signed(seed, FORMULAS.auth({ ...hello, hello_sig: hello.sig }))
  let work = 0
  while (FORMULAS.work({ ...hello, pk, pow: work.toString(16) }) < hello.pow_bits) work++
  return { t: 'auth', pk, sig, proto: '1.1', client: 'foreign/0.1', pow: hello.pow_bits ? work.toString(16) : null }
}

function visit(url, wanted) {
  const seed = randomBytes(32), opening = hex(randomBytes(32)), show = value => console.log(JSON.stringify(value))
  const socket = new WebSocket(url, { protocols: ['sapo.v1.1'], headers: { 'Shoal-Open': opening } })
  let swarm, now, say = message => socket.send(JSON.stringify(message))
  const hear = {
    hello: frame => say(answer(seed, frame, opening), swarm = frame.swarm),
    welcome: frame => {
      now = frame.time_ms
      say({ t: 'pub', ...seal(seed, swarm, JSON.stringify({ v: 1, swarm, key_seq: now, created_ms: now, ...wanted })) })
    },
    ok: frame => say({ t: 'sample', rid: 1, k: 8, max_bytes: 65536 }, show(frame)),
    batch: frame => frame.items.forEach(item => {
      try { show({ id: item.id, ...group(item, swarm, now) }) } catch ({ message }) { show({ refused: message }) }
    }, socket.close()),
    err: frame => { show(frame); process.exit(1) },
  }
  socket.onmessage = ({ data }, frame = parse(Buffer.from(data))) => hear[frame.t]?.(frame)
  socket.onerror = () => process.exit(1)
}
if (process.argv[1].endsWith('client.mjs')) visit(process.argv[2], JSON.parse(readFileSync(0)))
