import { expect } from 'chai'
import { sideBySide } from '../build/side-by-side.ts'

describe('feature: the entries that a gateway fetches when it starts', () => {
  const test = sideBySide({ barrier: true })

  test('are what every gateway holds', async start => {
    const rig = await start()
    const [old, fresh] = [rig.pod('web-1'), rig.pod('web-2')]
    rig.upstream('web', [old, fresh])
    await rig.settled()
    rig.end(old)
    expect((await rig.hook(old)).body).to.include({ result: 'drained' })
    const url = `http://127.0.0.1:${rig.agent.port}/v1/barrier-entries`
    const answer = await fetch(url, { headers: { authorization: `Bearer ${rig.barrierToken}` } })
    const { entries } = (await answer.json()) as { entries: { uid: string; ip: string; state: string }[] }
    expect(entries.map(({ uid, ip, state }) => ({ uid, ip, state }))).to.deep.equal([
      { uid: old.uid, ip: old.ip, state: 'sealed' }
    ])
    expect((await fetch(url)).status).to.equal(401)
  })
})
