import { expect } from 'chai'
import { until } from '../build/apisix.ts'
import { sideBySide } from '../build/side-by-side.ts'

describe('feature: only the pods of some namespaces are watched', () => {
  const test = sideBySide({ config: { KUBERNETES_NAMESPACES: 'shop' } })

  for (const phase of ['Succeeded', 'Failed'])
    for (const barrier of [false, true])
      test(`the old address of a pod that has ${phase} is left to its new owner${barrier ? ', in the deny-list too' : ''}`, async start => {
        const rig = await start({ barrier })
        const [job, old, fresh] = [rig.pod('job'), rig.pod('web-1'), rig.pod('web-2')]
        rig.upstream('other', [job])
        rig.upstream('web', [old, fresh])
        await rig.applied()
        await until('the agent knows them', () => [job, old, fresh].every(({ ip }) => rig.agent.knows(ip)))
        rig.kubernetes.store.patchStatus('pods', job.namespace, job.name, {
          phase,
          conditions: [{ type: 'Ready', status: 'False' }]
        })
        const next = rig.pod('live', { namespace: 'bank', ip: job.ip })
        const beside = rig.pod('beside', { namespace: 'bank' })
        rig.upstream('other', [next, beside])
        await rig.applied()
        await until('the agent lists both', () => rig.agent.nodes('upstreams/other') === 2)
        await until('the agent saw that it has finished', () => !rig.agent.knows(job.ip))
        // The agent handles ends in order. So if the job's end began a drain, that drain exists once this hook is answered.
        expect((await rig.drain(old)).status).to.equal(200)
        expect(rig.nodes('upstreams/other')).to.deep.equal([next.node, beside.node])
        expect([...rig.agent.loop.drains().values()].map(({ pod }) => pod.name)).to.deep.equal(['web-1'])
        if (barrier) expect(rig.gateways[0]!.barrier?.entries.look(next.ip, next.port)).to.equal('free')
      })

  test('a pod that called its hook once and stays as Failed has no claim to its old address (S4)', async start => {
    const rig = await start({ barrier: true })
    const old = rig.pod('job')
    rig.upstream('other', [old])
    await rig.applied()
    await until('the agent knows it', () => rig.agent.knows(old.ip))
    await until('the agent lists it', () => rig.agent.nodes('upstreams/other') === 1)
    expect((await rig.drain(old, 'timeout=100ms')).status).to.equal(503)
    await rig.entryIs('draining', old)
    rig.kubernetes.store.patchStatus('pods', old.namespace, old.name, { phase: 'Failed' })
    const next = rig.pod('live', { namespace: 'bank', ip: old.ip })
    rig.upstream('other', [next])
    await rig.entryIs('free', old)
    expect(rig.nodes('upstreams/other')).to.deep.equal([next.node])
  })
})
