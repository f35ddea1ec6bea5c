import { expect } from 'chai'
import { HOLD_ALL, judge } from '../../../../agent/rules/proof/proof.ts'
import { wordOf } from '../../../../agent/gateway/barrier/merge-words.ts'
import type { Word } from '../../../../agent/rules/proof/verdict.ts'
import type { WorkersWord } from '../../../../agent/gateway/apisix/barrier-wire.ts'

const told = (differs: Partial<WorkersWord> = {}): WorkersWord => ({
  said: 2,
  asked: 2,
  places: 1,
  sole: [],
  succeeded: [],
  hidden: 0,
  others: [{ places: 1, nodes: ['10.0.0.2:80'], more: 0 }],
  cut: 0,
  tag: 't1',
  ...differs
})

describe('the combined word of all workers about all addresses of a pod', () => {
  it('is complete if every worker has spoken of each address, with a tag for each', () => {
    expect(wordOf([told(), told({ tag: 't2', places: 2, sole: ['routes/1'] })])).to.deep.include({
      complete: true,
      places: 3,
      sole: ['routes/1'],
      tags: ['t1', 't2']
    })
  })

  it('is incomplete if one worker is silent about one address', () => {
    const { tag, ...silent } = told({ said: 1 })
    expect(tag).to.equal('t1')
    expect(wordOf([told(), silent])).to.deep.include({ complete: false, said: 1, asked: 2, tags: [] })
    expect(wordOf([told({ said: 1 })])).to.include({ complete: false })
  })

  it('is absent if the plugin gives none, or no address is asked', () => {
    expect(wordOf([told(), undefined])).to.equal(undefined)
    expect(wordOf([])).to.equal(undefined)
  })
})

describe('whether a seal leaves every worker with a choice', () => {
  const ask = (differs: Partial<WorkersWord>, serving: readonly string[] = ['10.0.0.2:80']) =>
    judge(wordOf([told(differs)]) as Word, node => serving.includes(node))
  const others = (nodes: readonly string[], more = 0) => ({
    others: [{ places: 1, nodes: [...nodes], more }]
  })

  it('leaves a choice if another node in each place may serve', () => {
    expect(ask({})).to.deep.equal({ tags: ['t1'] })
    expect(ask(others(['10.0.0.9:80', '10.0.0.2:80']))).to.deep.equal({ tags: ['t1'] })
    expect(ask({ places: 0, others: [] })).to.deep.equal({ tags: ['t1'] })
  })

  it('leaves a choice if there are unnamed nodes with no known fault', () => {
    expect(ask(others(['10.0.0.9:80'], 3))).to.deep.equal({ tags: ['t1'] })
  })

  it('leaves none if the words leave out places: their other nodes may be bad', () => {
    expect(ask({ cut: 1 })).to.deep.equal({
      why: 'the words of its workers leave out what is left in 1 more places'
    })
    const both = wordOf([told(), told({ cut: 2, tag: 't2' })]) as Word
    expect(judge(both, () => true)).to.have.property('why')
    expect(judge(both, () => true, { ...HOLD_ALL, cut: true })).to.deep.equal({ tags: ['t1', 't2'] })
  })

  it('leaves none while a worker has not spoken', () => {
    expect(ask({ said: 1 })).to.deep.equal({ why: '1 of 2 workers have said what they could choose instead' })
  })

  it('leaves none if a place has no other node, and names the place', () => {
    const isLast = true
    const why = 'nothing else is left in upstreams/web'
    expect(ask({ sole: ['upstreams/web'] })).to.deep.equal({ why, isLast })
    const all = 'nothing else is left in a, b, c and 2 more'
    expect(ask({ sole: ['a', 'b', 'c', 'd', 'e'] })).to.deep.equal({ why: all, isLast })
  })

  it('leaves none if no other node of a place serves', () => {
    const both = [...others(['10.0.0.2:80']).others, ...others(['10.0.0.9:80']).others]
    const why = 'what is left does not serve: 10.0.0.9:80'
    expect(ask({ others: both })).to.deep.equal({ why, isLast: true })
  })
})
