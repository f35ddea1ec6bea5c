import { expect } from 'chai'
import { systemClock } from '../../../../agent/base/clock.ts'
import { checkNamespaces } from '../../../../agent/doctor/rights/check-rbac.ts'
import { checkPods } from '../../../../agent/doctor/checks/check-pods.ts'
import { commandFor } from '../../../../agent/hook/inject/command.ts'
import type { Check } from '../../../../agent/doctor/checks/finding.ts'
import { createClusterLists } from '../../../../agent/doctor/checks/cluster-lists.ts'
import { startAdmin } from '../../../build/apisix.ts'

const SERVICE = {
  metadata: { uid: 's1', namespace: 'apisix', name: 'apisix-drain' },
  spec: { clusterIP: '10.96.0.7', ports: [{ port: 8080 }] }
}
const CALL = 'curl -fsS --noproxy "*"'
const URL = 'http://apisix-drain.apisix:8080/v1/prestop?namespace=$POD_NAMESPACE&pod=$POD_NAME'

const line = (text: string) => ({ exec: { command: ['sh', '-c', text] } })
const documented = (seconds: number, more = '|| sleep 5') => line(`${CALL} -m ${seconds} "${URL}" ${more}`)

interface Raw {
  readonly grace?: number
  readonly owner?: string
  readonly ip?: string
  readonly annotations?: Readonly<Record<string, string>>
}

const raw = (name: string, preStop: unknown, { grace = 30, owner = 'web', ip, annotations }: Raw = {}) => ({
  metadata: {
    uid: `uid-${name}`,
    name,
    namespace: 'shop',
    annotations,
    ownerReferences: [{ kind: 'ReplicaSet', name: owner, controller: true }]
  },
  spec: { terminationGracePeriodSeconds: grace, containers: [{ name: 'app', lifecycle: { preStop } }] },
  status: { phase: 'Running', ...(ip !== undefined && { podIP: ip, podIPs: [{ ip }] }) }
})

async function* page(objects: readonly unknown[]) {
  yield objects
}

const run = async (check: Check) => {
  const findings = await check(AbortSignal.timeout(5000))
  for (const { level, change } of findings) expect(change === '').to.equal(level === 'ok')
  return findings.map(({ level, name, what }) => `${level} ${name}: ${what}`)
}

describe('doctor: pods and their hooks', () => {
  let apisix: Awaited<ReturnType<typeof startAdmin>>
  beforeEach(async () => (apisix = await startAdmin({ pageSize: 10 })))
  afterEach(() => apisix.close())

  const surveyOf = (pods: readonly unknown[], services = true) =>
    createClusterLists({
      clock: systemClock,
      holders: async () => apisix.client,
      isOnlyApisix: async namespace => namespace === 'alone',
      lists: {
        pods: () => page(pods),
        slices: () => page([]),
        services: services
          ? () => page([SERVICE])
          : async function* () {
              yield []
              throw new Error('status 403')
            }
      }
    })
  const check = (pods: readonly unknown[], namespaces: readonly string[] = [], services = true) =>
    run(checkPods(surveyOf(pods, services), { reserveMs: 3000, needMs: 5000 }, namespaces))

  it('with enough grace are counted', async () => {
    expect(await check([raw('a', documented(25)), raw('b', documented(20))])).to.deep.equal([
      'ok pods: 2 pods with our hook, each with grace enough'
    ])
  })

  it('with one problem are one finding, with the number of pods of each owner', async () => {
    const late = (name: string, owner: string) => raw(name, documented(28), { owner })
    const found = await check([
      late('a', 'web'),
      late('b', 'web'),
      raw('c', documented(25)),
      ...['1', '2', '3', '4', '5'].map(i => late(`d${i}`, `api-${i}`))
    ])
    expect(found).to.deep.equal([
      "warn pods: shop/ReplicaSet/web (2 pods), shop/ReplicaSet/api-1 (1 pod), shop/ReplicaSet/api-2 (1 pod), shop/ReplicaSet/api-3 (1 pod), shop/ReplicaSet/api-4 (1 pod) and 1 more: the hook of container app may take 33s with its sleeps, longer than terminationGracePeriodSeconds (30s): raise the grace or lower the hook's -m"
    ])
  })

  const its = 'warn pods: shop/ReplicaSet/web (1 pod): the hook of container app'
  const mistakes: readonly [what: string, preStop: unknown, problems: readonly string[]][] = [
    [
      'does not name its pod, and goes through a proxy',
      line('curl -f http://apisix-drain.apisix:8080/v1/prestop || sleep 5'),
      [
        `${its} does not name its pod: add namespace and pod to its URL, or it is refused where packets leave with another address`,
        `${its} follows the proxy of its environment: add --noproxy "*" (curl), --no-proxy (GNU wget) or -Y off (busybox)`
      ]
    ],
    [
      'calls a Service in a namespace that has none of that name',
      line(`${CALL} "${URL.replace('apisix:', 'apixis:')}" || sleep 5`),
      [
        `${its} calls apisix-drain.apixis, and there is no Service apisix-drain in namespace apixis: correct the host of its URL`
      ]
    ],
    [
      'calls a Service without the namespace',
      line(`${CALL} "${URL.replace('.apisix:', ':')}" || sleep 5`),
      [
        `${its} calls apisix-drain, and there is no Service apisix-drain in namespace shop: correct the host of its URL`
      ]
    ],
    [
      'calls a wrong port',
      line(`${CALL} "${URL.replace('8080', '8081')}" || sleep 5`),
      [`${its} calls port 8081, and Service apisix/apisix-drain has port 8080: correct the port of its URL`]
    ],
    [
      'calls a wrong port by the full name',
      line(`${CALL} "${URL.replace('.apisix:8080', '.apisix.svc.cluster.local')}" || sleep 5`),
      [`${its} calls port 80, and Service apisix/apisix-drain has port 8080: correct the port of its URL`]
    ],
    [
      'takes a refusal for success',
      line(`curl -sS --noproxy "*" "${URL}" || sleep 5`),
      [`${its} takes a refusal of the agent for success: add -f to curl`]
    ],
    [
      'has no fallback',
      line(`${CALL} "${URL}"`),
      [`${its} has no fallback, so nothing waits if no agent answers: add "|| sleep 5" to it`]
    ],
    [
      'has only true as a fallback',
      line(`${CALL} "${URL}" || true`),
      [`${its} has no fallback, so nothing waits if no agent answers: add "|| sleep 5" to it`]
    ],
    [
      'sleeps longer than the grace',
      line(`${CALL} "${URL}" || sleep 44`),
      [
        `${its} may take 44s with its sleeps, longer than terminationGracePeriodSeconds (30s): raise the grace or lower the hook's -m`
      ]
    ],
    [
      'is an httpGet without a host',
      { httpGet: { path: '/v1/prestop?namespace=shop&pod=a', port: 8080 } },
      [
        `${its} calls its own pod: write the address of the agents' Service in httpGet.host`,
        `${its} is an httpGet, so any answer counts and nothing waits after a failure, and it comes from its host's address, so a restart of the container drains nothing: use exec`
      ]
    ],
    [
      'runs the helper with a wrong URL',
      { exec: { command: ['/bin/apisix-drain-hook', '--url=http://drain.apisix:8080'] } },
      [
        `${its} calls drain.apisix, and there is no Service drain in namespace apisix: correct the host of its URL`
      ]
    ]
  ]
  for (const [what, preStop, problems] of mistakes)
    it(`a hook that ${what} is reported`, async () =>
      expect(await check([raw('a', preStop)])).to.deep.equal(problems))

  const fine: readonly [what: string, preStop: unknown][] = [
    ['of the helper with its defaults', { exec: { command: ['apisix-drain-hook'] } }],
    ['with a variable for the host', line(`${CALL} "http://$AGENT:8080/v1/prestop?pod=$P" || sleep 5`)],
    ['with an address', line(`${CALL} "http://10.96.0.7:8080/v1/prestop?pod=$P" || sleep 5`)],
    [
      'with a name outside of the cluster',
      line(`${CALL} "http://drain.example.com/v1/prestop?pod=$P" || sleep 5`)
    ],
    ['with --fail and a condition', line(`if ! curl --fail --noproxy "*" "${URL}"; then sleep 5; fi`)],
    ['with two sleeps that fit', line(`${CALL} -m 10 "${URL}" || sleep 1 && sleep 5`)],
    ['of busybox', line(`wget -Y off -T 20 -qO- "${URL}" || sleep 5`)],
    ['of wget', line(`wget -qO- --no-proxy "${URL}" || sleep 5`)]
  ]
  for (const [what, preStop] of fine)
    it(`a hook ${what} is not`, async () =>
      expect(await check([raw('a', preStop)])).to.deep.equal([
        'ok pods: 1 pods with our hook, each with grace enough'
      ]))

  it('whose Services are not read are not accused of a wrong host', async () => {
    const pods = [raw('a', line(`${CALL} "${URL.replace('apisix:', 'apixis:')}" || sleep 5`))]
    expect(await check(pods, ['shop'])).to.deep.equal([
      'ok pods: 1 pods with our hook, each with grace enough'
    ])
    expect(await check(pods, [], false)).to.deep.equal([
      'ok pods: 1 pods with our hook, each with grace enough'
    ])
  })

  it('that APISIX lists and that have no hook are named, unless they opt out', async () => {
    const nodes = { '10.0.0.1:80': 1, '10.0.0.2:80': 1, '10.0.0.3:80': 1, '10.0.0.9:80': 1 }
    apisix.put('upstreams', 'web', { type: 'roundrobin', nodes })
    const sleeps = (name: string, ip: string, more: Raw = {}) => raw(name, line('sleep 5'), { ip, ...more })
    const plain = sleeps('b', '10.0.0.2', { owner: 'api' })
    const skip = sleeps('c', '10.0.0.3', { annotations: { 'apisix-drain.io/skip': 'true' } })
    const other = sleeps('d', '10.0.0.4')
    expect(await check([raw('a', documented(20), { ip: '10.0.0.1' }), plain, skip, other])).to.deep.equal([
      'warn pods: no hook in pods that APISIX lists: shop/ReplicaSet/api (1 pod)'
    ])
    expect(await check([plain])).to.deep.equal([
      'warn pods: no pod has a preStop hook that calls /v1/prestop or runs apisix-drain-hook; APISIX lists shop/ReplicaSet/api (1 pod)'
    ])
  })

  it('whose sleep was replaced are named, with what only-apisix would save', async () => {
    const replaces = (
      name: string,
      more: Raw = {},
      preStop: unknown = line(`${CALL} -m 20 "${URL}&atLeast=5s" || sleep 5`)
    ) => raw(name, preStop, more)
    const helper = {
      exec: { command: commandFor({ hook: 'helper', url: 'http://apisix-drain.apisix:8080' }, 30, 15) }
    }
    const alone = replaces('d')
    expect(
      await check([
        replaces('a'),
        replaces('b'),
        replaces('c', { owner: 'slow' }, helper),
        { ...alone, metadata: { ...alone.metadata, namespace: 'alone' } },
        replaces('e', { annotations: { 'apisix-drain.io/only-apisix': 'true' } }),
        raw('f', documented(20))
      ])
    ).to.deep.equal([
      'ok pods: 6 pods with our hook, each with grace enough',
      'ok pods: shop/ReplicaSet/web (2 pods): our hook replaces a sleep of 5s, its least time: if all their requests come through APISIX, apisix-drain.io/only-apisix: "true" on the pods or their namespace saves up to 5s of each end',
      'ok pods: shop/ReplicaSet/slow (1 pod): our hook replaces a sleep of 15s, its least time: if all their requests come through APISIX, apisix-drain.io/only-apisix: "true" on the pods or their namespace saves up to 15s of each end',
      'ok pods: alone/ReplicaSet/web (1 pod), shop/ReplicaSet/web (1 pod): our hook replaces a sleep of 5s, which is no least time, because all their requests come through APISIX'
    ])
  })

  it('whose grace is too short for any evidence are reported', async () => {
    expect((await check([raw('a', documented(1, '|| true'), { grace: 2 })]))[0]).to.match(
      /\(1 pod\): the reserve \(3s\) leaves nothing of terminationGracePeriodSeconds \(2s\)/
    )
    expect((await check([raw('a', documented(1, '|| true'), { grace: 6 })]))[0]).to.match(
      /held for at most 3s, but a proof takes 5s/
    )
  })

  it('without our hook are skipped; none at all is a warning', async () => {
    expect((await check([raw('a', line('sleep 5')), {}, 'no pod', undefined]))[0]).to.match(
      /^warn pods: no pod has a preStop hook/
    )
  })

  it('whose other containers end before the answer are reported, unless these have a preStop or are sidecars', async () => {
    const { spec, ...pod } = raw('a', documented(20))
    const containers = [
      ...spec.containers,
      { name: 'app2' },
      { name: 'own', lifecycle: { preStop: line('true') } }
    ]
    const sidecars = [{ name: 'mesh', restartPolicy: 'Always' }]
    expect(await check([{ ...pod, spec: { ...spec, containers, initContainers: sidecars } }])).to.deep.equal([
      'warn pods: shop/ReplicaSet/web (1 pod): app2 end before the hook of app is answered: add the hook to them as well'
    ])
  })

  it('on the network of their host are reported', async () => {
    const { spec, ...pod } = raw('a', documented(20))
    expect((await check([{ ...pod, spec: { ...spec, hostNetwork: true } }])).join()).to.match(
      /comes from its host's address \(hostNetwork\), so only a deletion/
    )
  })

  it('are looked for in each namespace of the configuration, which must exist', async () => {
    const statuses: Readonly<Record<string, number>> = { shop: 403, bank: 200, shpo: 404, empty: 403 }
    const ask = async (_method: string, path: string) => ({
      status: statuses[path.split('/').at(-1) ?? ''] ?? 500,
      json: {}
    })
    const survey = surveyOf([raw('a', documented(20))])
    expect(await run(checkNamespaces(ask, survey, ['shop', 'bank']))).to.deep.equal([
      'ok namespaces: shop, bank: in use'
    ])
    expect(await run(checkNamespaces(ask, survey, Object.keys(statuses)))).to.deep.equal([
      'fail namespaces: the configuration names namespace shpo, which does not exist',
      'warn namespaces: no pod is in namespace empty, and the agent may not ask whether it exists'
    ])
  })
})
