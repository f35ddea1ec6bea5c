import { expect } from 'chai'
import { CodedError } from '../../agent/base/errors.ts'
import { nodeKey, type NodeKey, type PodFact } from '../../agent/rules/drain/facts.ts'
import { readNodes } from '../../agent/gateway/apisix/holders.ts'
import { createRandom } from '../../sandbox/random.ts'
import { pod, terminating } from '../build/pod.ts'
import { sliceOf } from '../build/service.ts'
import { service, syncWorld } from '../build/sync-world.ts'

const SERVICES = 200
const MOST = 50
const MINUTES = 10
const STEP_MS = 2000
const GRACE_S = 8

/**
 * Ten minutes of constant changes in a cluster. Services are scaled (also to 0 and from 0). Pods turn unready and ready again,
 * are replaced, and reuse addresses. Slices are seconds late, the Admin API fails, and the agent restarts.
 */
describe('feature: sync of 200 Services with 50 endpoints', () => {
  for (const seed of [1])
    it(`ends with the nodes of the slices, and never empties a holder while a pod could serve it (seed ${seed})`, async function () {
      // The timeout is for each step, to end a test that hangs. All steps together may take any time on a busy machine.
      const proceeds = () => this.timeout(120_000)
      proceeds()
      const random = createRandom(seed)
      const pick = (most: number) => Math.floor(random() * most)
      const emptied: string[] = []
      const failing = { share: 0 }
      const world = syncWorld({
        podRanges: '10.0.0.0/8',
        fails: () =>
          random() < failing.share
            ? new CodedError('ADMIN_UNREACHABLE', 'a test', { status: 503 })
            : undefined,
        onWrite(_resource, id, before, after) {
          const had = readNodes(before?.['nodes'])?.nodes.length ?? 0
          const left = readNodes(after['nodes'])?.nodes.length ?? 0
          if (had > 0 && left === 0 && ready(id).length > 0) emptied.push(id)
        }
      })
      const fleets = new Map<string, PodFact[]>()
      const slicesDue = new Map<string, number>()
      const free: string[] = []
      let made = 0

      const ready = (name: string): NodeKey[] =>
        world.slices
          .of('shop', name)
          .flatMap(slice => slice.endpoints.filter(e => e.ready).map(e => nodeKey(e.address, 8080)))
      const listed = (name: string): NodeKey[] =>
        (readNodes(world.apisix.value('upstreams', name)?.['nodes'])?.nodes ?? []).map(node => node.key)
      const addPod = (name: string): PodFact => {
        const ip =
          (random() < 0.5 ? free.shift() : undefined) ?? `10.${made >> 16}.${(made >> 8) & 255}.${made & 255}`
        made++
        return pod(`${name}-${made}`, { ips: [ip], ready: random() < 0.7, startedAt: world.clock.now() })
      }
      const change = (name: string, pods: PodFact[]): void => {
        const before = new Map(fleets.get(name)?.map(one => [one.uid, one]))
        for (const one of pods) {
          if (before.get(one.uid) !== one) world.pod(one)
          before.delete(one.uid)
        }
        for (const [uid, { ips }] of before) {
          world.podGone(uid)
          free.push(...ips)
        }
        fleets.set(name, pods)
        // The EndpointSlice controller is up to three seconds late.
        if (!slicesDue.has(name)) slicesDue.set(name, world.clock.now() + pick(3000))
      }
      const publish = (all = false): void => {
        for (const [name, at] of slicesDue) {
          if (!all && at > world.clock.now()) continue
          slicesDue.delete(name)
          world.slice(sliceOf(name, fleets.get(name) ?? []))
        }
      }
      const scaled = (name: string): PodFact[] => {
        const now = world.clock.now()
        const pods = (fleets.get(name) ?? []).flatMap(one => {
          return [one.deletionAt === undefined && random() < 0.1 ? { ...one, ready: !one.ready } : one]
        })
        const running = pods.filter(one => one.deletionAt === undefined)
        const wanted =
          random() < 0.1 ? 0 : Math.max(1, Math.min(MOST, (running.length || MOST) + pick(21) - 10))
        const more = Array.from({ length: Math.max(0, wanted - running.length) }, () => addPod(name))
        const ending = new Set(running.slice(0, Math.max(0, running.length - wanted)))
        // As in a rolling update, some pods are replaced.
        if (random() < 0.3) for (const one of running.slice(0, pick(5))) ending.add(one)
        return [
          ...pods.map(one => (ending.has(one) ? { ...one, ...terminating(now, GRACE_S) } : one)),
          ...more
        ]
      }

      const names = Array.from({ length: SERVICES }, (_, i) => `web-${i}`)
      for (const [i, name] of names.entries()) {
        world.service(service(name, { upstream: name }))
        // Half of the upstreams list a machine that is not a pod, and half are maps.
        if (i % 4 > 1) world.apisix.set('upstreams', name, { nodes: i % 4 === 2 ? {} : [] })
        if (i % 4 === 0) world.apisix.set('upstreams', name, { nodes: { '192.168.0.1:80': 7 } })
        if (i % 4 === 1) {
          world.apisix.set('upstreams', name, {
            nodes: [{ host: '192.168.0.1', port: 80, weight: 7, metadata: { rack: 'a' } }]
          })
        }
        change(
          name,
          Array.from({ length: MOST }, () => addPod(name))
        )
      }
      publish(true)
      await world.start()
      for (let past = 0; past < MINUTES * 60_000; past += STEP_MS) {
        failing.share = random() < 0.2 ? 0.3 : 0
        for (const [name, pods] of fleets) {
          const left = pods.filter(one => (one.deletionAt ?? Infinity) > world.clock.now())
          if (left.length < pods.length) change(name, left)
        }
        for (let n = 0; n < 2; n++) {
          const name = names[pick(SERVICES)] ?? ''
          change(name, scaled(name))
        }
        publish()
        if (random() < 0.01) await world.start()
        await world.pass(STEP_MS, STEP_MS)
        proceeds()
      }

      // Then all changes end: ending pods are gone, slices are up to date, and the Admin API answers.
      failing.share = 0
      for (const name of names)
        change(
          name,
          (fleets.get(name) ?? []).filter(one => one.deletionAt === undefined)
        )
      publish(true)
      await world.pass(30_000, STEP_MS)
      const rest = world.apisix.writes()
      await world.pass(5000, STEP_MS)
      expect(world.apisix.writes(), 'writes when nothing changes').to.equal(rest)
      expect(emptied).to.deep.equal([])
      for (const [i, name] of names.entries()) {
        const strangers = i % 4 < 2 ? ['192.168.0.1:80'] : []
        const wanted = ready(name)
        const unready = (fleets.get(name) ?? []).map(one => `${one.ips[0]}:8080`)
        if (wanted.length > 0) expect(listed(name), name).to.have.members([...strangers, ...wanted])
        else expect([...strangers, ...unready], name).to.include.members(listed(name))
        const kept = readNodes(world.apisix.value('upstreams', name)?.['nodes'])?.nodes.find(
          node => node.host === '192.168.0.1'
        )
        if (i % 4 < 2) expect(kept?.weight).to.equal(7)
        if (i % 4 === 1) expect(kept?.raw).to.deep.include({ metadata: { rack: 'a' } })
      }
      await world.agent.stop()
    })
})
