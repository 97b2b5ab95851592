// Runs client.mjs over the cases of app/swarm/conformance: node cases.mjs FOLDER. Ends with 1 where one fails.
import { createCipheriv, createDecipheriv, createHmac, diffieHellman } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join as path } from 'node:path'
import { FORMULAS, answer, group, hash, hex, holds, join, open, parse, publicOf, seal, secret, signed, un,
} from './client.mjs'

const read = name => JSON.parse(readFileSync(path(process.argv[2], `${name}.json`), 'utf-8'))
const [frames, groups, sealed, signatures] = ['frames', 'groups', 'private', 'signatures'].map(read)
let passed = 0, failed = 0
function check(what, act, expected) {  // `expected`: what comes out, or the Error it must throw
  let found
  try { found = act() } catch (error) { found = error }
  const same = expected instanceof Error ? found instanceof Error && [found.message, ''].includes(expected.message) :
    JSON.stringify(found) === JSON.stringify(expected)
  same ? passed++ : (failed++, console.log(`${what}: ${found instanceof Error ? found.stack : JSON.stringify(found)}`))
}
const changed = (text, { replace = [] }) =>
  replace.reduce((now, [old, put, times = 1]) => now.replace(old, () => put.repeat(times)), text)

for (const one of signatures.ed25519)
  check(one.says, () => holds(un(one.key), un(one.message), un(one.sig)), one.holds)
for (const one of signatures.relay) check('relay', () => FORMULAS.relay(one), one.relay)
for (const one of signatures.work) check('work', () => FORMULAS.work(one), one.bits)
const SIGNED = { ...FORMULAS,
  receipt: one => hash('shoal-receipt-v1\0', one.swarm, '\0', un(one.id)),
  lesson: one => hash('shoal-lesson-v1\0', one.swarm, '\0', un(one.author), one.family),
  token: one => join('shoal-token-v1\0', one.swarm, '\0', `${one.until}`, '\0', one.who) }
for (const kind of ['hello', 'auth', 'group', 'receipt', 'lesson', 'token'])
  for (const one of signatures[kind])
    check(kind, () => signed(un(one.seed), SIGNED[kind](one)), one.sig ?? one.token.split('.')[3])
for (const one of signatures.group) check('id', () => seal(un(one.seed), one.swarm, one.body).id, one.id)

const [auth, pub] = frames.to_relay.taken, [hello] = frames.from_relay.taken, mine = un(signatures.auth[0].seed)
const ours = answer(mine, hello, signatures.hello[0].opening)
check('auth', () => [ours.pk, ours.sig], [auth.pk, auth.sig])
check('work for it', () => FORMULAS.work({ ...hello, ...ours }) >= hello.pow_bits, true)
check('auth on another connection', () => answer(mine, hello, hex(Buffer.alloc(32))), new Error())
check('pub', () => ({ t: 'pub', ...seal(mine, hello.swarm, pub.body) }), pub)
for (const frame of frames.from_relay.taken) check(frame.t, () => parse(Buffer.from(JSON.stringify(frame))), frame)
for (const one of frames.from_relay.refused.filter(one => one.refused === 'not-json'))
  check(one.says, () => parse(one.hex ? un(one.hex) : Buffer.from(changed(one.frame, one))), new Error('not-json'))

const verdict = one => group({ ...seal(un(groups.seed), groups.swarm, changed(groups.body, one)), ...one.envelope },
  groups.swarm, groups.now_ms) && 'taken'
check('the example', () => seal(un(groups.seed), groups.swarm, groups.body).sig, groups.sig)
for (const one of groups.taken.concat(groups.puzzles)) check(one.says, () => verdict(one), 'taken')
for (const one of groups.refused) check(one.says, () => verdict(one), new Error(one.refused))

// The line of a private swarm: Noise_NNpsk0_25519_ChaChaPoly_SHA256, from the page and the framework's revision 34.
const hmac = (key, ...parts) => createHmac('sha256', key).update(join(...parts)).digest()
function hkdf(chain, input, count) {
  const key = hmac(chain, input), out = []
  for (let i = 1; i <= count; i++) out.push(hmac(key, out.at(-1) ?? '', Buffer.from([i])))
  return out
}
function cipher(key) {
  let n = 0n
  const nonce = () => { const made = Buffer.alloc(12); made.writeBigUInt64LE(n++, 4); return made }
  return {
    encrypt(ad, text) {
      const one = createCipheriv('chacha20-poly1305', key, nonce(), { authTagLength: 16 }).setAAD(ad)
      return join(one.update(text), one.final(), one.getAuthTag())
    },
    decrypt(ad, bytes) {
      const one = createDecipheriv('chacha20-poly1305', key, nonce(), { authTagLength: 16 }).setAAD(ad)
      return join(one.setAuthTag(bytes.subarray(-16)).update(bytes.subarray(0, -16)), one.final())
    },
  }
}
const name = 'Noise_NNpsk0_25519_ChaChaPoly_SHA256', NONE = Buffer.alloc(0)
const shared = (mine, theirs) => diffieHellman({ privateKey: secret(mine, '6e'), publicKey: open(theirs, '6e') })
for (const one of sealed.lines) check(one.says, () => {  // as the client and as the relay: both writings must agree
  let h = name.length > 32 ? hash(name) : join(name, Buffer.alloc(32 - name.length)), chain = h, line
  const mix = data => { h = hash(h, data) }
  const mixKey = input => { const [next, key] = hkdf(chain, input, 2); chain = next; line = cipher(key) }
  mix(un(one.prologue))
  const [next, temporary, key] = hkdf(chain, un(one.secret), 3)
  chain = next, mix(temporary), line = cipher(key)
  const out = [], [client, relay] = [one.client, one.relay].map(seed => publicOf(secret(un(seed), '6e')))
  const [[, first], [, second], ...rest] = one.messages
  const speak = text => { const bytes = line.encrypt(h, un(text)); mix(bytes); return bytes }
  mix(client), mixKey(client)
  out.push(hex(join(client, speak(first))))
  mix(relay), mixKey(relay)
  mixKey(shared(un(one.client), relay))
  out.push(hex(h))
  out.push(hex(join(relay, speak(second))))
  const [towards, back] = hkdf(chain, NONE, 2), ways = { client: cipher(towards), relay: cipher(back) }
  for (const [who, text] of rest) out.push(hex(ways[who].encrypt(NONE, un(text))))
  const heard = { client: cipher(towards), relay: cipher(back) }
  for (const [who, text, bytes] of rest) if (hex(heard[who].decrypt(NONE, un(bytes))) !== text) throw new Error(text)
  return out
}, [one.messages[0][2], one.opening, ...one.messages.slice(1).map(one => one[2])])
for (const point of sealed.refused_points) check(`the point ${point}`, () => {
  if (shared(un(sealed.lines[0].client), un(point)).every(byte => !byte)) throw new Error()
}, new Error())

console.log(`${passed} passed, ${failed} failed`)
process.exitCode = failed ? 1 : 0
