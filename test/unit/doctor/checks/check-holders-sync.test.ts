import { expect } from 'chai'
import { checkSync } from '../../../../agent/doctor/checks/check-gateways.ts'
import { service } from '../../../build/sync-world.ts'

const find = (asking: readonly ReturnType<typeof service>[], allow: readonly string[]) => {
  const survey = {
    services: () => Promise.resolve({ asking: () => asking }),
    inventory: () => Promise.resolve({ holders: () => new Map() })
  }
  return checkSync(survey as never, allow)(new AbortController().signal)
}

describe('doctor: sync', () => {
  const web = service('web', { upstream: 'web' })

  it('counts the upstreams that follow a Service', async () => {
    const [finding] = await find([web], ['shop/w*'])
    expect(finding).to.include({ level: 'ok', what: '1 upstreams follow Services' })
  })

  it('names each Service that has no upstream, with the reason', async () => {
    const [finding] = await find([web, service('api', { upstream: 'web' })], ['shop/w*'])
    expect(finding?.level).to.equal('warn')
    expect(finding?.what).to.include('shop/web: upstreams/web follows shop/api')
    const [refused] = await find([web], ['shop/api'])
    expect(refused?.what).to.include('sync.allow does not let namespace shop fill upstreams/web')
  })
})
