import { expect } from 'chai'
import * as fc from 'fast-check'

import { begin } from '../../../../agent/rules/drain/step.ts'
import type { Holder } from '../../../../agent/rules/plan/holder.ts'
import { plan } from '../../../../agent/rules/plan/plan.ts'
import { DRAIN_SETTINGS, drainsOf, seen } from '../../../build/drain.ts'
import { holder } from '../../../build/holder.ts'
import { pod } from '../../../build/pod.ts'
import { applyPlan, worldOf } from '../../../build/world.ts'

/** Few addresses and ports, so that pods reuse addresses and share hosts, and holders become empty. */
const IPS = ['10.0.0.1', '10.0.0.2', '10.0.0.3', '10.0.0.4', 'fd00::1']
const PORTS = [8080, 9090]

const podArb = fc.record({
  ips: fc.subarray(IPS, { minLength: 1, maxLength: 2 }),
  hostNetwork: fc.boolean(),
  containerPorts: fc.subarray(PORTS),
  owner: fc.constantFrom('ReplicaSet/web', 'DaemonSet/web'),
  state: fc.constantFrom('live', 'unready', 'ending', 'ending', 'gone', 'over', 'skipped'),
  graceMs: fc.constantFrom(1_000, 30_000, 60_000),
  began: fc.integer({ min: 0, max: 2_000 })
})

const nodeArb = fc
  .record({
    host: fc.constantFrom(
      ...IPS.map(ip => (ip.includes(':') ? `[${ip}]` : ip)),
      '192.168.0.9',
      'api.example'
    ),
    port: fc.constantFrom(':8080', ':9090', ':7070', ''),
    weight: fc.constantFrom('=0', '=1', '')
  })
  .map(({ host, port, weight }) => host + port + weight)

const holderArb = fc.record({
  nodes: fc.uniqueArray(nodeArb, { maxLength: 6, selector: text => text.replace(/=.*/, '') }),
  owner: fc.constantFrom('unknown' as const, 'ingress-controller-2' as const),
  form: fc.constantFrom('map' as const, 'array' as const),
  discovery: fc.constantFrom(undefined, undefined, undefined, { type: 'dns', service: 'web' })
})

const settingsArb = fc.record({
  dryRun: fc.constantFrom(false, false, false, true),
  unbarred: fc.boolean()
})

const sceneArb = fc
  .record({
    pods: fc.array(podArb, { maxLength: 6 }),
    holders: fc.array(holderArb, { maxLength: 4 }),
    settings: settingsArb
  })
  .map(({ pods, holders, settings }) => {
    const facts = pods.map(({ state, began, ...more }, i) => {
      const ends = state === 'ending' || state === 'skipped'
      const fact = pod(`p${i}`, {
        ...more,
        ready: state !== 'unready' && state !== 'over',
        phase: state === 'over' ? 'Failed' : 'Running',
        ...(ends ? { deletionAt: began + more.graceMs, deletionGraceMs: more.graceMs } : {}),
        annotations: state === 'skipped' ? { 'apisix-drain.io/skip': 'true' } : {}
      })
      return {
        fact,
        gone: state === 'gone',
        drain: begin(seen(fact, { gone: state === 'gone' }), began, DRAIN_SETTINGS)
      }
    })
    return {
      holders: holders.map((h, i) =>
        holder(`h${i}`, h.nodes, { owner: h.owner, form: h.form, discovery: h.discovery })
      ),
      pods: facts.filter(({ gone }) => !gone).map(({ fact }) => fact),
      drains: facts.flatMap(({ drain }) => (drain ? [drain] : [])),
      settings
    }
  })

type Scene = typeof sceneArb extends fc.Arbitrary<infer T> ? T : never

const planOf = ({ pods, drains, settings }: Scene, holders: readonly Holder[]) =>
  plan(worldOf(holders, pods), drainsOf(drains), settings)

const law = (check: (scene: Scene) => void) => fc.assert(fc.property(sceneArb, check), { numRuns: 1_000 })

/** Whether a node leads to a pod. This repeats the definition, and does not use the code under test. */
const reaches = (scene: Scene, host: string, port: number | undefined) => (p: Scene['pods'][number]) =>
  p.ips.includes(host) && (!p.hostNetwork || port === undefined || p.containerPorts.includes(port))

describe('laws of plan', () => {
  it('a plan that was applied leaves nothing to do', () =>
    law(scene => {
      const first = planOf(scene, scene.holders)
      const second = planOf(scene, applyPlan(scene.holders, first))
      expect(second.changes).to.deep.equal([])
      expect(second.kept).to.deep.equal(first.kept)
    }))

  it('no holder is left without a node', () =>
    law(scene => {
      const after = applyPlan(scene.holders, planOf(scene, scene.holders))
      scene.holders.forEach((before, i) => {
        if (before.nodes.length > 0) expect(after[i]?.nodes).to.not.be.empty
      })
    }))

  it('a holder that had a node which gets requests and serves still has one', () =>
    law(scene => {
      const dead = new Set(scene.drains.filter(d => d.phase === 'gone').map(d => d.uid))
      const exist = [...scene.pods, ...scene.drains.filter(d => dead.has(d.uid)).map(d => d.pod)]
      const serving = (h: Holder) =>
        h.nodes.filter(node => {
          if (node.weight === 0 && h.nodes.some(other => other.weight > 0)) return false
          const all = exist.filter(reaches(scene, node.host, node.port))
          return all.length === 0 || all.some(p => p.ready && !dead.has(p.uid))
        })
      const after = applyPlan(scene.holders, planOf(scene, scene.holders))
      scene.holders.forEach((before, i) => {
        if (serving(before).length > 0) expect(serving(after[i] as Holder)).to.not.be.empty
      })
    }))

  it('only nodes of ending pods are removed, and none that a live pod has', () =>
    law(scene => {
      for (const { holder: h, nodes } of planOf(scene, scene.holders).changes) {
        expect(h.discovery).to.equal(undefined)
        for (const { key, uid } of nodes) {
          const node = h.nodes.find(n => n.key === key) as Holder['nodes'][number]
          const ends = scene.drains.find(d => d.uid === uid)
          expect(ends && reaches(scene, node.host, node.port)(ends.pod)).to.equal(true)
          const ending = new Set(scene.drains.map(d => d.uid))
          const live = scene.pods.filter(
            p => !ending.has(p.uid) && p.deletionAt === undefined && p.phase === 'Running'
          )
          expect(live.filter(reaches(scene, node.host, node.port))).to.deep.equal([])
        }
      }
    }))

  it('a dry run writes nothing', () =>
    law(scene => {
      const dry = { ...scene, settings: { ...scene.settings, dryRun: true } }
      expect(planOf(dry, scene.holders).changes).to.deep.equal([])
    }))

  it('the order of holders, pods, drains and nodes makes no difference', () =>
    law(scene => {
      const turned = {
        ...scene,
        pods: scene.pods.toReversed(),
        drains: scene.drains.toReversed()
      }
      const holders = scene.holders.toReversed().map(h => ({ ...h, nodes: h.nodes.toReversed() }))
      const shape = (p: ReturnType<typeof planOf>) => ({
        changes: p.changes.map(change => ({ holder: change.holder.key, nodes: change.nodes })),
        kept: p.kept
      })
      expect(shape(planOf(turned, holders))).to.deep.equal(shape(planOf(scene, scene.holders)))
    }))

  it('inspects only the holders that list an ending pod', () => {
    const holders = Array.from({ length: 5_000 }, (_, i) =>
      holder(`h${i}`, [`10.1.${i >> 8}.${i & 255}:80`, '10.2.0.1:80'])
    )
    const pods = Array.from({ length: 500 }, (_, i) =>
      pod(`p${i}`, { ips: [`10.1.${i >> 8}.${i & 255}`], deletionAt: 1 })
    )
    const drains = pods.flatMap(p => begin(seen(p), 0, DRAIN_SETTINGS) ?? [])
    const index = worldOf(holders, pods)
    const asked: string[] = []
    const world = {
      ...index,
      holders: () => expect.fail('all holders were asked for'),
      holdersOf: (host: string) => (asked.push(host), index.holdersOf(host))
    }
    const { changes } = plan(world, drainsOf(drains), { dryRun: false })
    expect(changes).to.have.length(500)
    expect(asked).to.have.length(500)
  })
})
