import { expect } from 'chai'
import type { Drain } from '../../../../agent/rules/drain/drain.ts'
import { listedGhosts } from '../../../../agent/report/behind/behind-view.ts'
import type { Memory } from '../../../../agent/round/gather/memory.ts'
import { holder } from '../../../build/holder.ts'

const NOW = 1_000_000

describe('listed ghosts', () => {
  const web = holder('web', ['10.0.0.1:8080', '10.0.0.9:8080'])
  const holders = new Map([[web.key, web]])
  const shown = (ghosts: ReturnType<typeof listedGhosts>) =>
    Object.fromEntries([...ghosts].map(([key, nodes]) => [key, Object.fromEntries(nodes)]))

  it('are nodes that outlived the pod that we drained', () => {
    const gone = { uid: 'uid-c', phase: 'gone', at: NOW - 500 } as Drain
    const memory = () =>
      ({
        places: new Map([
          ['1', { holder: web, node: '10.0.0.9:8080', removedAt: undefined }],
          ['2', { holder: holder('other', []), node: '10.0.0.9:8080', removedAt: NOW - 100 }]
        ])
      }) as unknown as Memory
    const of = (drain: Drain) => shown(listedGhosts({ holders, found: new Map(), drains: [drain], memory }))
    expect(of(gone)).to.deep.equal({ 'upstreams/web': { '10.0.0.9:8080': NOW - 500 } })
    expect(of({ ...gone, phase: 'proven' } as Drain)).to.deep.equal({})
  })

  it('are those of the last listing too, while they are listed', () => {
    const [, nobodys] = web.nodes
    const [gone] = holder('web', ['10.0.0.8:8080']).nodes
    const found = [
      { node: nobodys!, evidence: 'no pod has had its address for 600 s', since: NOW - 600_000 },
      { node: gone!, evidence: 'its pod was seen to end', since: NOW - 1000 }
    ]
    const ghosts = listedGhosts({
      holders,
      found: new Map([[web.key, found]]),
      drains: [],
      memory: () => undefined as never
    })
    expect(shown(ghosts)).to.deep.equal({ 'upstreams/web': { '10.0.0.9:8080': NOW - 600_000 } })
  })
})
