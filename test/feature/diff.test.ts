import { expect } from 'chai'
import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { DiffReport } from '../../agent/doctor/diff-report.ts'
import { GATEWAY_NAMESPACE } from '../../sandbox/manifests.ts'
import { arrayOf } from '../build/held-nodes.ts'
import type { Rig } from '../build/rig.ts'
import { sideBySide } from '../build/side-by-side.ts'

const MAIN = fileURLToPath(new URL('../../agent/main.ts', import.meta.url))

/** Runs `apisix-drain diff` as a user does, in a separate process. */
async function diff(rig: Rig, ...flags: string[]) {
  const directory = await mkdtemp(join(tmpdir(), 'apisix-drain-diff-'))
  try {
    const kubeconfig = join(directory, 'kubeconfig')
    await rig.kubernetes.writeKubeconfig(kubeconfig)
    const barrier = rig.gateways[0]?.urls.barrier
    const settings = {
      KUBERNETES_KUBECONFIG: kubeconfig,
      APISIX_ADMIN_URL: rig.admin.url,
      APISIX_ADMIN_KEY_ENV: 'RIG_KEY',
      APISIX_CONTROL_PORT: new URL(rig.gateways[0]?.urls.control ?? '').port,
      APISIX_GATEWAYS_NAMESPACE: GATEWAY_NAMESPACE,
      SYNC_POD_RANGES: '127.0.0.0/8',
      ...(barrier && { APISIX_BARRIER_PORT: new URL(barrier).port, APISIX_BARRIER_TOKEN_ENV: 'RIG_KEY' })
    }
    const env = Object.fromEntries(
      Object.entries(settings).map(([key, value]) => [`APISIX_DRAIN_${key}`, value])
    )
    const child = spawn(process.execPath, [MAIN, 'diff', ...flags], {
      env: { PATH: process.env['PATH'], RIG_KEY: rig.barrierToken, ...env },
      stdio: ['ignore', 'pipe', 'pipe']
    })
    let [out, err] = ['', '']
    child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
    child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()))
    const code = await new Promise<number | null>(resolve => child.once('close', resolve))
    return { code, out, err }
  } finally {
    await rm(directory, { recursive: true })
  }
}

const OWNER = { name: 'shop_web_80', labels: { 'managed-by': 'apisix-ingress-controller' } }

describe('feature: apisix-drain diff', () => {
  const test = sideBySide({ gateways: 2, agent: false })

  test('prints nothing and exits 0 if all three agree', async start => {
    const rig = await start()
    const pods = [rig.pod('web-1'), rig.pod('web-2')]
    rig.service('web', pods)
    rig.put('upstreams', 'web', { type: 'roundrobin', ...OWNER, nodes: arrayOf(pods) })
    await rig.applied()
    const { code, out, err } = await diff(rig)
    expect({ code, out, err }).to.deep.equal({
      code: 0,
      out: 'no difference in 1 holders at the Admin API and 2 gateways\n',
      err: ''
    })
  })

  test('prints ghost, missing and stale with their places, and exits 1', async start => {
    const rig = await start()
    const [old, added, kept] = [rig.pod('web-1'), rig.pod('web-2'), rig.pod('web-3')]
    rig.service('web', [added, kept])
    rig.put('upstreams', 'web', { type: 'roundrobin', ...OWNER, nodes: arrayOf([old, kept]) })
    await rig.applied()
    // Kubernetes has deleted the pod `old`. APISIX still lists it, and does not list `added`.
    rig.kubernetes.store.delete('pods', old.namespace, old.name, { gracePeriodSeconds: 0 })
    // The gateway `late` has lost its watch, and still has a node that was removed after that.
    const [, late] = rig.gateways
    rig.put('upstreams', 'api', { type: 'roundrobin', nodes: arrayOf([kept, added]) })
    await rig.applied()
    for (const worker of late?.workers ?? []) worker.loseWatch()
    rig.put('upstreams', 'api', { type: 'roundrobin', nodes: arrayOf([kept]) })
    await rig.applied(rig.gateways.slice(0, 1))

    const json = await diff(rig, '--json')
    const report = JSON.parse(json.out) as DiffReport
    const rows = report.differences.map(({ kind, node, holder, where }) =>
      [kind, node, holder, where].join(' ')
    )
    expect(rows).to.have.members([
      `ghost ${old.node} upstreams/web admin-api`,
      `missing ${added.node} upstreams/web admin-api`,
      // The upstream `api` has no known owner. But it lists only pods of this Service, and the missing pod is newer.
      `missing ${added.node} upstreams/api admin-api`,
      `ghost ${old.node} upstreams/web apisix-0`,
      `ghost ${old.node} upstreams/web apisix-1`,
      `stale ${added.node} upstreams/api ${late?.name}`
    ])
    expect(
      report.differences.find(({ kind, holder }) => kind === 'missing' && holder === 'upstreams/web')?.writer
    ).to.equal('ingress controller 1.x')
    expect(json.code).to.equal(1)
    const { code, out } = await diff(rig)
    expect(out.split('\n')[0]).to.match(/^KIND +NODE +WHERE +HOLDER +WRITER$/)
    expect(out).to.match(/6 differences in 2 holders at the Admin API and 2 gateways\n$/)
    expect(code).to.equal(1)
  })

  test('names places that hide pods, which do not count as a difference', async start => {
    const rig = await start()
    rig.service('web', [rig.pod('web-1'), rig.pod('web-2')])
    rig.put('upstreams', 'web', { name: 'shop_web', nodes: { 'web.shop.svc:80': 1 } })
    await rig.applied()
    const why = 'web.shop.svc:80 is a name of Service shop/web'
    const { code, out } = await diff(rig)
    expect(out).to.contain(
      `hidden: upstreams/web (shop_web): ${why}; it may lead to 2 pods (shop/web-1, shop/web-2)`
    )
    expect(out).to.contain('resolveGranularity: endpoint').and.to.contain('no difference in 1 holders')
    expect(code).to.equal(0)
    const json = await diff(rig, '--json')
    const { hidden } = JSON.parse(json.out) as DiffReport
    expect(hidden).to.have.length(1)
    expect(hidden[0]).to.deep.include({
      holder: 'upstreams/web',
      name: 'shop_web',
      node: 'web.shop.svc:80',
      why,
      pods: ['shop/web-1', 'shop/web-2'],
      count: 2
    })
    expect(json.code).to.equal(0)
  })

  for (const all of [true, false])
    test(`${all ? 'names no L4 place if every gateway covers' : 'names L4 places if one gateway does not cover'} L4`, async start => {
      const rig = await start({ barrier: true, stream: true })
      for (const [i, gateway] of rig.gateways.entries()) gateway.barrier!.l4 = all || i === 0
      rig.put('upstreams', 'db', { type: 'roundrobin', scheme: 'tcp', nodes: { [rig.pod('db-1').node]: 1 } })
      await rig.applied()
      const { code, out } = await diff(rig)
      expect(out.includes('hidden: upstreams/db'), out).to.equal(!all)
      expect(code).to.equal(0)
    })

  test('exits 1 if a gateway cannot be read, because its state is unknown', async start => {
    const rig = await start()
    rig.upstream('web', [rig.pod('web-1')])
    await rig.applied()
    await rig.gateways[1]?.partition({ control: 'refused' })
    const { code, out } = await diff(rig)
    expect(out).to.contain('not read: apisix-1:').and.to.contain('no difference in 1 holders')
    expect(code).to.equal(1)
  })

  for (const flags of [[], ['--json']])
    test(`${['diff', ...flags].join(' ')} reports a refused key once, and shows its progress if asked (D14)`, async start => {
      const rig = await start()
      rig.admin.faults.inject({ fault: { kind: 'status', status: 401 }, path: '/apisix/admin/' })
      const { code, out, err } = await diff(rig, ...flags, '--progress')
      expect(code).to.equal(1)
      expect(err).to.include('reading the Admin API')
      const text =
        flags.length > 0 ? (JSON.parse(out) as { problems: string[] }).problems.join('\n') : out + err
      expect(text.match(/apisix\.admin\.keyFile/g), text).to.have.length(1)
    })
})
