import { expect } from 'chai'
import { systemClock } from '../../../../agent/base/clock.ts'
import { CodedError } from '../../../../agent/base/errors.ts'
import {
  checkGateways,
  checkOthers,
  type GatewayCalls,
  checkAdmin
} from '../../../../agent/doctor/checks/check-gateways.ts'
import {
  createClusterLists,
  type Check,
  type ListObjects
} from '../../../../agent/doctor/checks/cluster-lists.ts'
import { checkKubernetes, checkRbac, PERMISSIONS } from '../../../../agent/doctor/rights/check-rbac.ts'
import { staticGateway } from '../../../../agent/kubernetes/facts/gateway-store.ts'
import type { GatewayFact } from '../../../../agent/rules/drain/facts.ts'
import { config, type Settings } from '../../../build/config.ts'
import { GATEWAY } from '../../../build/gateway.ts'
import { rowsOf } from '../../../build/rows.ts'

describe('doctor', () => {
  const run = async (check: Check) => {
    const findings = await check(new AbortController().signal)
    for (const { level, change } of findings) expect(change === '').to.equal(level === 'ok')
    return findings.map(({ level, name, what }) => `${level} ${name}: ${what}`)
  }
  const rejects = () => Promise.reject(new Error('ECONNREFUSED'))

  describe('kubernetes', () => {
    const answers = (status: number, json: unknown) => checkKubernetes(async () => ({ status, json }))
    const cases: [Check, string][] = [
      [answers(200, { gitVersion: 'v1.34.1' }), 'ok kubernetes: the API server answers, version v1.34.1'],
      [answers(401, {}), 'fail kubernetes: the API server refuses our credentials (401)'],
      [answers(200, '<html>'), 'fail kubernetes: the API server answers 200 to /version'],
      [answers(503, {}), 'fail kubernetes: the API server answers 503 to /version']
    ]
    for (const [check, wanted] of cases)
      it(wanted, async () => expect(await run(check)).to.deep.equal([wanted]))
  })

  describe('rbac', () => {
    interface Asked {
      readonly spec: { readonly resourceAttributes: { readonly verb: string; readonly resource: string } }
    }
    const granting =
      (allowed: (verb: string, resource: string) => boolean, asked: unknown[] = []) =>
      async (_method: string, _path: string, body: unknown) => {
        const { resourceAttributes: wanted } = (body as Asked).spec
        asked.push(wanted)
        return { status: 201, json: { status: { allowed: allowed(wanted.verb, wanted.resource) } } }
      }

    it('passes if all is granted, and asks for all namespaces', async () => {
      const asked: unknown[] = []
      const ask = granting(() => true, asked)
      expect(await run(checkRbac(ask, []))).to.deep.equal([
        `ok rbac: all ${PERMISSIONS.length} permissions are granted`
      ])
      expect(asked).to.deep.include({ verb: 'watch', group: '', resource: 'pods' })
    })

    it('fails for rights that every hook needs, warns of the rest, and names the rule to add', async () => {
      const findings = await checkRbac(
        granting((verb, resource) => verb !== 'watch' && resource !== 'events'),
        []
      )(AbortSignal.timeout(1000))
      expect(findings.map(({ level, what }) => `${level} ${what}`)).to.deep.equal([
        'fail we may not watch pods in all namespaces, needed to see that pods end',
        'fail we may not watch endpointslices.discovery.k8s.io in all namespaces, needed to map Services to pods',
        'warn we may not watch services in all namespaces, needed to see which addresses and names stand for pods, and which upstreams follow Services (sync)',
        'warn we may not create events.events.k8s.io in all namespaces, needed to say on the pod how its drain went'
      ])
      expect(findings[1]?.change).to.equal(
        'add to the ClusterRole: apiGroups ["discovery.k8s.io"], resources ["endpointslices"], verbs ["watch"]'
      )
    })

    it('asks for each watched namespace', async () => {
      const ask = granting((verb, resource) => !(verb === 'get' && resource === 'pods'))
      expect(await run(checkRbac(ask, ['shop', 'bank']))).to.deep.equal([
        'fail rbac: we may not get pods in shop, needed to see that pods end',
        'fail rbac: we may not get pods in bank, needed to see that pods end'
      ])
    })

    it('reports once that it cannot ask, or that its credentials are refused', async () => {
      const answers = (status: number) => run(checkRbac(async () => ({ status, json: {} }), []))
      expect(await answers(403)).to.deep.equal([
        'fail rbac: the agent cannot ask for its own rights: status 403'
      ])
      expect(await answers(401)).to.deep.equal(['fail rbac: the API server refuses our credentials (401)'])
    })

    it('warns of each right at the Lease, which is asked for by its name but for create', async () => {
      const asked: unknown[] = []
      const place = { namespace: 'apisix', name: 'drain' }
      const found = await run(
        checkRbac(
          granting((_verb, resource) => resource !== 'leases', asked),
          [],
          place
        )
      )
      expect(found).to.deep.equal(
        ['create', 'get', 'update'].map(
          verb =>
            `warn rbac: we may not ${verb} leases.coordination.k8s.io in apisix, needed so that one agent alone syncs and emits Events`
        )
      )
      const lease = { group: 'coordination.k8s.io', resource: 'leases', namespace: 'apisix' }
      expect(asked).to.deep.include({ ...lease, verb: 'create' })
      expect(asked).to.deep.include({ ...lease, verb: 'get', name: 'drain' })
    })
  })

  for (const [mode, standalone, wanted] of [
    ['etcd', async () => undefined, 'ok admin-api: the Admin API takes our key; APISIX runs with etcd'],
    ['standalone', async () => ({}), 'warn admin-api: API-driven standalone: every gateway holds its own'],
    ['unreachable', rejects, 'fail admin-api: ECONNREFUSED']
  ] as const) {
    it(`admin-api ${mode}`, async () =>
      expect((await run(checkAdmin({ standalone }))).join()).to.match(new RegExp(`^${wanted}`)))
  }

  describe('gateways', () => {
    interface Row {
      readonly case: string
      readonly settings?: Settings
      readonly plugin?: false
      readonly gateways?: readonly Partial<GatewayFact>[]
      readonly ids?: Readonly<Record<string, readonly string[]>>
      readonly control?: false
      readonly barrier?: false | string
      readonly health?: { readonly l4?: readonly string[] }
      /** Lines; behind a slash, a pattern. */
      readonly says: readonly string[]
    }
    for (const row of rowsOf('gateways.yaml', import.meta.url) as readonly Row[])
      it(row.case, async () => {
        const {
          settings,
          plugin,
          ids = {},
          gateways = [{}],
          control,
          barrier,
          health: { l4 = [], ...health } = {}
        } = row
        const byHand = Object.keys(ids).map(name => staticGateway({ name, host: name }))
        const workers = l4.map(one => ({ pid: 1, fit: true, revisions: {}, l4: one }))
        const asked: Record<string, number> = {}
        const calls: GatewayCalls = {
          list: async () => (byHand.length > 0 ? byHand : gateways.map(one => ({ ...GATEWAY, ...one }))),
          readControl: control === false ? rejects : async () => ({}),
          async readBarrier(host) {
            if (barrier === false) return rejects()
            if (barrier) throw new CodedError('BARRIER_VERSION', '', { status: 409, meaning: barrier })
            const all = ids[host] ?? ['i1']
            const instance = all[(asked[host] = (asked[host] ?? -1) + 1) % all.length]!
            return { instance, fit: true, unfit: [], plugin: '0.3.0', workers, ...health }
          }
        }
        const lines = await run(
          checkGateways(calls, config({ ...(plugin ?? { APISIX_BARRIER_TOKEN: 'edd1' }), ...settings }))
        )
        expect(lines).to.have.length(row.says.length)
        for (const [i, says] of row.says.entries())
          if (says.startsWith('/')) expect(lines[i]).to.match(new RegExp(says.slice(1)))
          else expect(lines[i]).to.equal(says)
      })

    it('that look like APISIX and are not selected are a warning', async () => {
      const pod = (name: string, image: string, ip: string, labels = {}) => ({
        metadata: { uid: name, name, namespace: 'edge', labels },
        spec: { containers: [{ name: 'c', image }] },
        status: { phase: 'Running', podIP: ip }
      })
      const found = async (...pods: readonly unknown[]) => {
        const each: ListObjects = async onItem => pods.forEach(onItem)
        const lists = { pods: each, services: each }
        const holders = () => Promise.reject(new Error('not asked'))
        return run(
          checkOthers(
            createClusterLists({ clock: systemClock, isOnlyApisix: async () => false, lists, holders }),
            async () => [GATEWAY]
          )
        )
      }
      expect(
        await found(
          pod('known', 'apache/apisix:3.18', GATEWAY.ip),
          pod('ctrl', 'apache/apisix-ingress-controller:2', '10.0.9.1')
        )
      ).to.deep.equal(['ok others: no other pod looks like APISIX'])
      const label = { 'app.kubernetes.io/name': 'apisix' }
      expect(
        (
          await found(
            pod('a', 'mirror:5000/apache/apisix@sha256:1', '10.0.9.2'),
            pod('b', 'own', '10.0.9.3', label)
          )
        )[0]
      ).to.match(
        /^warn others: these look like APISIX .* apisix.gateways: edge\/a, edge\/b; requests by them/
      )
    })
  })
})
