import { expect } from 'chai'
import { SignJWT, UnsecuredJWT } from 'jose'
import { createApp } from '../../../agent/hook/app.ts'
import { createSigningKeys, type SigningKeys } from '../../../agent/hook/signing-keys.ts'
import { manualClock } from '../../build/manual-clock.ts'
import { pod } from '../../build/pod.ts'
import { manualHolds, memoryLog, serveParts } from '../../build/serve.ts'
import { claimsOf, createSigner, type Signer } from '../../build/token.ts'

const web = pod('web-1', { ips: ['10.0.0.7'] })
const other = pod('web-2', { ips: ['10.0.0.8'] })

describe('a hook that shows a token', () => {
  let signer: Signer
  let forger: Signer
  before(async () => {
    signer = await createSigner()
    forger = await createSigner()
  })

  const setUp = () => {
    const clock = manualClock()
    const api = { status: 200, json: { keys: [signer.jwk] } as unknown, asked: 0 }
    const keys: SigningKeys = createSigningKeys({
      get: async () => (api.asked++, { status: api.status, json: api.json }),
      clock,
      log: memoryLog().log
    })
    const holds = manualHolds(web, other)
    holds.onHeld = () => holds.held.at(-1)?.answer()
    const parts = serveParts(holds, clock, { tokenKeys: keys.find })
    const app = createApp(parts)
    const call = async (authorization?: string, query = '', remoteAddress = '10.0.0.7') => {
      const headers: Record<string, string> = authorization === undefined ? {} : { authorization }
      const response = await app.request(
        `/v1/prestop${query}`,
        { headers },
        { incoming: { socket: { remoteAddress } } }
      )
      const body = (await response.json()) as Record<string, unknown>
      return { status: response.status, headers: response.headers, body }
    }
    return { api, clock, keys, holds, parts, call }
  }
  const bearer = (token: string) => `Bearer ${token}`

  it('is for the pod in the token, wherever the call comes from', async () => {
    const { call, clock, holds, keys } = setUp()
    for (const [address, query] of [
      ['10.0.0.7', ''],
      ['10.0.0.8', ''],
      ['172.16.0.1', `?namespace=shop&pod=web-1&uid=${web.uid}`]
    ] as const) {
      const { status } = await call(bearer(await signer.sign(web, clock.now())), query, address)
      expect(status).to.equal(200)
      expect(holds.held.at(-1)?.pod.name).to.equal('web-1')
    }
    keys.stop()
  })

  it('has its age measured by the API server’s clock, however wrong ours is', async () => {
    const { call, clock, holds, keys } = setUp()
    const HOUR = 3_600_000
    const fresh = bearer(await signer.sign(web, clock.now() - HOUR))
    const future = bearer(await signer.sign(web, clock.now()))
    expect((await call(fresh)).status).to.equal(401)
    holds.serverBehindMs = () => HOUR
    expect((await call(fresh)).status).to.equal(200)
    expect((await call(future)).status).to.equal(401)
    keys.stop()
  })

  it('may be signed with an elliptic curve', async () => {
    const { api, call, clock, keys } = setUp()
    const curve = await createSigner('curve', 'ES256')
    api.json = { keys: [signer.jwk, curve.jwk] }
    clock.advance(10_000)
    expect((await call(bearer(await curve.sign(web, clock.now())))).status).to.equal(200)
    keys.stop()
  })

  type Forge = (now: number) => Promise<string | undefined> | string | undefined
  const sign = (differs: (now: number) => Record<string, unknown>) => (now: number) =>
    signer.sign(web, now, differs(now)).then(bearer)
  const seconds = (now: number) => Math.floor(now / 1000)
  const refused: Record<string, [forge: Forge, status: number, why: RegExp, query?: string]> = {
    'no token': [() => undefined, 401, /send the pod's own token as Authorization: Bearer/],
    'another scheme': [() => 'Basic YTpi', 401, /send the pod's own token/],
    'no JWT': [() => 'Bearer abc', 401, /cannot be read/],
    'a JWT of garbage': [() => 'Bearer e30.e30.e30', 401, /cannot be read|in a way that Kubernetes/],
    'a huge token': [() => bearer('a'.repeat(7000)), 401, /longer than 6144/],
    'an expired token': [sign(now => ({ exp: seconds(now) - 60 })), 401, /has expired/],
    'a token that is not valid yet': [sign(now => ({ nbf: seconds(now) + 60 })), 401, /not valid: nbf/],
    'a token that never expires': [sign(() => ({ exp: undefined })), 401, /not valid: exp/],
    'a token for the API server': [
      sign(() => ({ aud: ['https://kubernetes.default.svc'] })),
      401,
      /not for the audience apisix-drain/
    ],
    'a token of another cluster, with the same kid': [
      now => forger.sign(web, now).then(bearer),
      401,
      /not signed by this cluster/
    ],
    'a token with no signature': [
      now => bearer(new UnsecuredJWT(claimsOf(web, now)).encode()),
      401,
      /cannot be read|in a way that Kubernetes/
    ],
    'a token signed with the public key as a secret': [
      now =>
        new SignJWT(claimsOf(web, now))
          .setProtectedHeader({ alg: 'HS256', kid: 'first' })
          .sign(new TextEncoder().encode(signer.jwk.n))
          .then(bearer),
      401,
      /in a way that Kubernetes does not/
    ],
    'a token with other claims under the signature of a good one': [
      async now => {
        const [header, , signature] = (await signer.sign(web, now)).split('.')
        const [, claims] = (await forger.sign(other, now)).split('.')
        return bearer([header, claims, signature].join('.'))
      },
      401,
      /not signed by this cluster/
    ],
    'a token that is no ServiceAccount’s': [
      sign(() => ({ 'kubernetes.io': 'shop' })),
      401,
      /no ServiceAccount token/
    ],
    'a token that is bound to no pod': [
      sign(() => ({ 'kubernetes.io': { namespace: 'shop' } })),
      403,
      /bound to no pod/
    ],
    'the token of another pod': [
      now => signer.sign(other, now).then(bearer),
      403,
      /is that of shop\/web-2, and a pod can only drain itself/,
      '?namespace=shop&pod=web-1'
    ],
    'the uid of another pod': [
      now => signer.sign(web, now).then(bearer),
      403,
      /is that of shop\/web-1/,
      `?uid=${other.uid}`
    ],
    'the token of a pod that had this name before': [
      sign(() => ({ 'kubernetes.io': { namespace: 'shop', pod: { name: 'web-1', uid: 'uid-before' } } })),
      403,
      /shop\/web-1 has another uid now/
    ],
    'the token of a pod that is gone': [
      sign(() => ({ 'kubernetes.io': { namespace: 'shop', pod: { name: 'web-0', uid: 'uid-web-0' } } })),
      404,
      /knows no pod shop\/web-0/
    ]
  }
  for (const [what, [forge, status, why, query]] of Object.entries(refused)) {
    it(`refuses ${what}, and never shows the token`, async () => {
      const { call, clock, holds, keys, parts } = setUp()
      const authorization = await forge(clock.now())
      const answer = await call(authorization, query)
      expect(answer.body['why']).to.match(why)
      expect(answer.status).to.equal(status)
      expect(holds.held).to.deep.equal([])
      const error = String(answer.body['error'])
      expect(await parts.metrics.registry.metrics()).to.include(
        `apisix_drain_hook_refusals_total{error="${error}"} 1`
      )
      if (status === 401) expect(answer.headers.get('www-authenticate')).to.equal('Bearer')
      if (status !== 404)
        expect(parts.lines.at(-1)).to.include({ msg: 'hook refused', error, address: '10.0.0.7' })
      const said = JSON.stringify([answer.body, parts.lines])
      for (const part of (authorization ?? '').split(/[ .]/).slice(1)) {
        if (part.length > 3) expect(said).not.to.include(part)
      }
      keys.stop()
    })
  }

  it('is refused without keys, never identified by address instead', async () => {
    const { api, call, clock, holds, keys } = setUp()
    keys.stop()
    const without = createSigningKeys({
      get: () => Promise.reject(new Error('no connection')),
      clock,
      log: memoryLog().log
    })
    const app = createApp(serveParts(holds, clock, { tokenKeys: without.find }))
    const headers = { authorization: bearer(await signer.sign(web, clock.now())) }
    const response = await app.request(
      '/v1/prestop',
      { headers },
      { incoming: { socket: { remoteAddress: '10.0.0.7' } } }
    )
    expect(response.status).to.equal(503)
    expect(await response.json()).to.have.property('error', 'cannot-ask-kubernetes')
    expect(holds.held).to.deep.equal([])
    without.stop()
    expect(api.asked).to.be.above(0)
    expect((await call(undefined)).status).to.equal(401)
  })

  it('survives a new key: an unknown key is fetched at once, but not for every caller that sends one', async () => {
    const { api, call, clock, keys } = setUp()
    expect((await call(bearer(await signer.sign(web, clock.now())))).status).to.equal(200)
    const next = await createSigner('second')
    const token = bearer(await next.sign(web, clock.now()))
    expect((await call(token)).status).to.equal(401)
    const before = api.asked
    for (let tries = 0; tries < 20; tries++) await call(token)
    expect(api.asked).to.equal(before)
    api.json = { keys: [signer.jwk, next.jwk] }
    clock.advance(10_000)
    expect((await call(token)).status).to.equal(200)
    expect(api.asked).to.equal(before + 1)
    keys.stop()
  })

  it('is accepted while the API server is down; a removed key expires within five minutes', async () => {
    const { api, call, clock, keys } = setUp()
    const token = async () => bearer(await signer.sign(web, clock.now()))
    expect((await call(await token())).status).to.equal(200)
    api.status = 500
    clock.advance(300_000)
    expect((await call(await token())).status).to.equal(200)
    api.status = 200
    api.json = { keys: [(await createSigner('second')).jwk] }
    clock.advance(300_000)
    await new Promise(resolve => setImmediate(resolve))
    expect((await call(await token())).status).to.equal(401)
    keys.stop()
  })
})
