import { expect } from 'chai'
import { createWishes } from '../../../../agent/round/entries/succession.ts'
import { systemClock } from '../../../../agent/base/clock.ts'
import { until } from '../../../build/apisix.ts'
import { pod } from '../../../build/pod.ts'
import { rowsOf } from '../../../build/rows.ts'

const web = pod('web', { workload: 'ReplicaSet.apps/web-<hash>', owner: 'ReplicaSet/web-1a' })
const SET = '/apis/apps/v1/namespaces/shop/replicasets/web-1a'
const DEPLOYMENT = '/apis/apps/v1/namespaces/shop/deployments/web'

/** Asks for a pod until the API server has given every answer. */
async function wish(answers: Readonly<Record<string, object>>, of = web) {
  const asked: string[] = []
  let [time, changes] = [0, 0]
  const call = (_: string, path: string) => {
    asked.push(path)
    const json = answers[path]
    return Promise.resolve({ status: json === undefined ? 404 : 200, json, ...json } as never)
  }
  const mayCome = createWishes({ call }, { ...systemClock, now: () => time }, () => (changes += 1))
  const first = mayCome(of)
  if (of === web) await until('it is answered', () => (mayCome(of) ? asked.length > 0 : true))
  for (let i = 0; i < 10; i += 1) await new Promise(resolve => setImmediate(resolve))
  const found = { first, later: mayCome(of), changes, asked: asked.length }
  time = 6000
  mayCome(of)
  await new Promise(resolve => setImmediate(resolve))
  return { ...found, again: asked.length > found.asked }
}

describe('whether another pod may come before the last one is gone', () => {
  interface Row {
    readonly case: string
    /** What the API server answers about its ReplicaSet and its Deployment; without an answer, there is none. */
    readonly set?: object
    readonly deployment?: object
    readonly mayCome: boolean
  }
  for (const { case: name, set, deployment, mayCome } of rowsOf(
    'wishes.yaml',
    import.meta.url
  ) as readonly Row[])
    it(`${name}: ${mayCome ? 'yes' : 'no'}, asked again after 5 s`, async () => {
      const { first, later, changes, again } = await wish({
        ...(set && { [SET]: set }),
        ...(deployment && { [DEPLOYMENT]: deployment })
      })
      expect({ first, later, changes, again }).to.deep.equal({
        first: true,
        later: mayCome,
        changes: mayCome ? 0 : 1,
        again: true
      })
    })

  it('asks nobody about a pod of another kind of owner', async () => {
    const other = { ...web, workload: 'Shop.example.com/web', owner: 'Shop/web' }
    expect(await wish({}, other)).to.include({ first: true, later: true, asked: 0, again: false })
  })
})
