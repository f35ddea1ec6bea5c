import { expect } from 'chai'
import { editNodes } from '../../../../agent/gateway/apisix/nodes.ts'
import { nodeFor, withWishes, type Edit } from '../../../../agent/gateway/write/edit.ts'
import { holder, node } from '../../../build/holder.ts'

const WEB = holder('web', ['10.0.0.1:80', '10.0.0.2:80'])
const drained = (...remove: string[]): Edit => ({ path: [], holder: WEB, add: [], remove: new Set(remove) })
const told = (edits: readonly Edit[]) =>
  edits.map(({ add, remove, mayEmpty }) => ({ add: add.map(n => n.key), remove: [...remove], mayEmpty }))

describe('nodes wished for a holder', () => {
  it('go into the same edit as drained nodes', () => {
    const wish = { holder: WEB.key, put: [node('10.0.0.3:80')], remove: [] }
    expect(told(withWishes([drained('10.0.0.1:80')], [wish], [WEB]))).to.deep.equal([
      { add: ['10.0.0.3:80'], remove: ['10.0.0.1:80'], mayEmpty: undefined }
    ])
  })

  it('do not empty a holder together with a drain, but may do so alone', () => {
    const last = { holder: WEB.key, put: [], remove: ['10.0.0.2:80'] }
    expect(told(withWishes([drained('10.0.0.1:80')], [last], [WEB]))).to.deep.equal([
      { add: [], remove: ['10.0.0.1:80'], mayEmpty: undefined }
    ])
    const all = { holder: WEB.key, put: [], remove: ['10.0.0.1:80', '10.0.0.2:80'] }
    const [edit] = withWishes([], [all], [WEB])
    expect(editNodes({ '10.0.0.1:80': 1, '10.0.0.2:80': 1 }, edit!)).to.deep.equal({})
  })

  it('do not put back a node that is being drained', () => {
    const wish = { holder: WEB.key, put: [node('10.0.0.1:80')], remove: [] }
    expect(told(withWishes([drained('10.0.0.1:80')], [wish], [WEB]))[0]?.add).to.deep.equal([])
  })

  it('are none for a removed holder, or one whose nodes APISIX discovers', () => {
    const wish = { holder: WEB.key, put: [node('10.0.0.3:80')], remove: [] }
    expect(withWishes([], [wish], [])).to.deep.equal([])
    const found = { ...WEB, discovery: { type: 'dns', service: 'web' } }
    expect(withWishes([], [wish], [found])).to.deep.equal([])
  })

  it('give a new node the weight and priority of the node that it is like, else weight 100', () => {
    const raw = { host: '10.0.0.1', port: 80, weight: 5, priority: 2, metadata: { rack: 'a' } }
    const like = { ...WEB.nodes[0]!, weight: 5, raw }
    const array = { ...WEB, form: 'array' as const }
    const added = { host: '10.0.0.3', port: 80 }
    expect(nodeFor({ key: '10.0.0.3:80', like: undefined }, array).raw).to.deep.equal({
      ...added,
      weight: 100
    })
    expect(nodeFor({ key: '10.0.0.3:80', like }, array).raw).to.deep.equal({
      ...added,
      weight: 5,
      priority: 2
    })
    expect(nodeFor({ key: '10.0.0.3:80', like }, WEB)).to.include({ raw: '10.0.0.3:80', weight: 5 })
  })
})
