import { expect } from 'chai'
import { systemClock } from '../../../../agent/base/clock.ts'
import { checkNamespaces } from '../../../../agent/doctor/rights/check-rbac.ts'
import { checkPods } from '../../../../agent/doctor/checks/check-pods.ts'
import { commandFor } from '../../../../agent/hook/inject/inject.ts'
import { createClusterLists, type Check } from '../../../../agent/doctor/checks/cluster-lists.ts'
import { startAdmin } from '../../../build/apisix.ts'
import { rowsOf } from '../../../build/rows.ts'

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

  interface Row {
    readonly case: string
    readonly run?: string
    readonly preStop?: unknown
    readonly problems?: readonly string[]
  }
  const OK = ['ok pods: 1 pods with our hook, each with grace enough']
  for (const { case: what, run, preStop, problems } of rowsOf(
    'hooks.yaml',
    import.meta.url
  ) as readonly Row[])
    it(`a hook ${what}`, async () => {
      const its = 'warn pods: shop/ReplicaSet/web (1 pod): the hook of container app'
      const found = await check([raw('a', run === undefined ? preStop : line(run))])
      expect(found).to.deep.equal(problems?.map(problem => `${its} ${problem}`) ?? OK)
    })

  it('whose Services are not read are not accused of a wrong host', async () => {
    const pods = [raw('a', line(`${CALL} "${URL.replace('apisix:', 'apixis:')}" || sleep 5`))]
    expect(await check(pods, ['shop'])).to.deep.equal(OK)
    expect(await check(pods, [], false)).to.deep.equal(OK)
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
      exec: {
        command: commandFor({ hook: 'helper', url: 'http://apisix-drain.apisix:8080' }, 30, {
          container: 'app',
          sleep: 15
        })
      }
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
    const statuses: Readonly<Record<string, number>> = { shop: 403, bank: 200, shpo: 404 }
    const ask = async (_method: string, path: string) => ({
      status: statuses[path.split('/').at(-1) ?? ''] ?? 500,
      json: {}
    })
    expect(await run(checkNamespaces(ask, ['bank']))).to.deep.equal(['ok namespaces: bank: in use'])
    expect(String(await run(checkNamespaces(ask, ['shop', 'bank'])))).to.match(/^warn namespaces: [^,]+$/)
    expect(await run(checkNamespaces(ask, Object.keys(statuses)))).to.deep.equal([
      'fail namespaces: the configuration names shpo, which does not exist'
    ])
  })
})
