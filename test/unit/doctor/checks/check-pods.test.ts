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

interface Raw {
  readonly name: string
  readonly seconds?: number
  readonly run?: string
  readonly preStop?: unknown
  readonly helper?: number
  readonly namespace?: string
  readonly owner?: string
  readonly grace?: number
  readonly ip?: string
  readonly annotations?: Readonly<Record<string, string>>
  readonly containers?: readonly object[]
  readonly initContainers?: readonly object[]
  readonly hostNetwork?: boolean
}

function hookOf({ seconds, run, preStop, helper: sleep }: Raw): unknown {
  if (seconds !== undefined) return line(`${CALL} -m ${seconds} "${URL}" || sleep 5`)
  if (sleep === undefined) return run === undefined ? preStop : line(run)
  const settings = { hook: 'helper', url: 'http://apisix-drain.apisix:8080' } as const
  return { exec: { command: commandFor(settings, 30, { container: 'app', sleep }) } }
}

function raw(of: Raw) {
  const {
    name,
    namespace = 'shop',
    owner = 'web',
    grace = 30,
    ip,
    annotations,
    containers = [],
    ...more
  } = of
  return {
    metadata: {
      uid: `uid-${name}`,
      name,
      namespace,
      annotations,
      ownerReferences: [{ kind: 'ReplicaSet', name: owner, controller: true }]
    },
    spec: {
      terminationGracePeriodSeconds: grace,
      containers: [{ name: 'app', lifecycle: { preStop: hookOf(of) } }, ...containers],
      initContainers: more.initContainers,
      hostNetwork: more.hostNetwork
    },
    status: { phase: 'Running', ...(ip !== undefined && { podIP: ip, podIPs: [{ ip }] }) }
  }
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
        pods: async onItem => pods.forEach(onItem),
        services: services ? async onItem => onItem(SERVICE) : () => Promise.reject(new Error('status 403'))
      }
    })
  const check = (pods: readonly unknown[], namespaces: readonly string[] = [], services = true) =>
    run(checkPods(surveyOf(pods, services), { reserveMs: 3000, needMs: 5000 }, namespaces))

  interface Case {
    readonly case: string
    readonly pods: readonly Raw[]
    readonly odd?: readonly unknown[]
    readonly nodes?: readonly string[]
    readonly namespaces?: readonly string[]
    readonly unread?: boolean
    /** Lines; behind a slash, a part of the only one. */
    readonly says: readonly string[]
  }
  for (const { case: what, pods, odd = [], nodes, namespaces, unread, says } of rowsOf(
    'pods.yaml',
    import.meta.url
  ) as readonly Case[])
    it(what, async () => {
      if (nodes) apisix.put('upstreams', 'web', { nodes: Object.fromEntries(nodes.map(node => [node, 1])) })
      const found = await check([...pods.map(raw), ...odd], namespaces, !unread)
      if (!says[0]?.startsWith('/')) expect(found).to.deep.equal(says)
      else expect(found.join()).to.include(says[0].slice(1))
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
      const found = await check([raw({ name: 'a', ...(run === undefined ? { preStop } : { run }) })])
      expect(found).to.deep.equal(problems?.map(problem => `${its} ${problem}`) ?? OK)
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
