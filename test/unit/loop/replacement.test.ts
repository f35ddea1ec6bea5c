import { expect } from 'chai'
import type { Drains } from '../../../agent/drain/drain.ts'
import type { PodFact } from '../../../agent/drain/facts.ts'
import { replacements } from '../../../agent/loop/replacement.ts'
import { worldOf } from '../../../agent/plan/world.ts'
import { drainOf, drainsOf, seen } from '../../build/drain.ts'
import { holder } from '../../build/holder.ts'
import { pod, terminating } from '../../build/pod.ts'

const ending = pod('ending', { ips: ['10.0.0.1'], ...terminating(0) })
const drains = drainsOf([drainOf(seen(ending))])
/** When each node was first listed. */
const SINCE = new Map([
  ['10.0.0.1:80', 1],
  ['10.0.0.2:80', 5],
  ['10.0.0.3:80', 9]
])

/** When the holders were listed, and when each pod was up, as far as that was lately. */
const LISTED_AT = 100
/** That of the holder then. */
const REVISION = 12
type Ups = Readonly<Record<string, number>>

function since(
  nodes: readonly string[],
  pods: readonly PodFact[] = [],
  asked: Drains = drains,
  ups: Ups = {}
) {
  const web = { ...holder('web', nodes), revision: REVISION }
  const inventory = {
    holders: () => new Map([[web.key, web]]),
    listedSince: (_holder: string, node: string) =>
      SINCE.get(node) ?? (node.startsWith('10.1.') ? 3 : undefined),
    readAt: () => LISTED_AT
  }
  const cluster = { pods: { upSince: (uid: string) => ups[uid] } }
  const world = worldOf([web], [ending, ...pods])
  return replacements({ inventory, cluster } as never, world, asked)(web.key)
}

describe('what takes over', () => {
  it('is known since its node was first listed, the earliest of several', () => {
    expect(since(['10.0.0.1:80', '10.0.0.3:80', '10.0.0.2:80'])).to.equal(5)
  })

  it('is nothing where only ending pods are listed, where its weight is 0, or where nobody saw it come', () => {
    expect(since(['10.0.0.1:80'])).to.equal(undefined)
    expect(since(['10.0.0.1:80', '10.0.0.2:80=0'])).to.equal(undefined)
    expect(since(['10.0.0.1:80', '10.0.0.9:80'])).to.equal(undefined)
  })

  it('is a pod that is Ready; an address that is no pod’s is not ours to judge', () => {
    const next = pod('next', { ips: ['10.0.0.2'], ready: false })
    expect(since(['10.0.0.1:80', '10.0.0.2:80'], [next])).to.equal(undefined)
    expect(since(['10.0.0.1:80', '10.0.0.2:80', '10.0.0.3:80'], [next])).to.equal(9)
    expect(since(['10.0.0.1:80', '10.0.0.2:80'], [{ ...next, ready: true }])).to.equal(5)
  })

  it('is no pod that came up after the listing: what is listed there may be the pod before it', () => {
    const next = pod('next', { ips: ['10.0.0.2'] })
    const upSince = (at: number) => since(['10.0.0.1:80', '10.0.0.2:80'], [next], drains, { [next.uid]: at })
    expect(upSince(LISTED_AT + 1)).to.equal(undefined)
    expect(upSince(LISTED_AT)).to.equal(REVISION)
  })

  it('is known by the last listing where it came up lately: it may have been out between two of them', () => {
    const [lately, long] = [pod('lately', { ips: ['10.0.0.2'] }), pod('long', { ips: ['10.0.0.3'] })]
    const nodes = ['10.0.0.1:80', '10.0.0.2:80', '10.0.0.3:80']
    const ups = { [lately.uid]: LISTED_AT - 1 }
    expect(since(nodes.slice(0, 2), [lately], drains, ups)).to.equal(REVISION)
    expect(since(nodes, [lately, long], drains, ups)).to.equal(9)
  })

  it('is not looked for among thousands where the first that serve all came up lately', () => {
    const ips = Array.from({ length: 16 }, (_, i) => `10.1.0.${i}`)
    const many = ips.map(ip => pod(ip, { ips: [ip] }))
    const ups = Object.fromEntries(many.map(({ uid }) => [uid, LISTED_AT]))
    const among = (count: number) =>
      since([...ips.slice(0, count).map(ip => `${ip}:80`), '10.0.0.2:80'], many, drains, ups)
    expect([among(15), among(16)]).to.deep.equal([5, REVISION])
  })

  it('may be a pod whose drain was undone', () => {
    const stays = { ...ending, deletionAt: undefined }
    const undone = { ...drainOf(seen(ending)), phase: 'undone', at: 1, why: 'it stays', pod: stays } as const
    expect(since(['10.0.0.1:80'], [stays], drainsOf([undone]))).to.equal(1)
  })
})
