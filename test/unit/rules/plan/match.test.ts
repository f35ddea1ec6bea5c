import { expect } from 'chai'

import { nodesOf } from '../../../../agent/rules/plan/holder.ts'
import { pod } from '../../../build/pod.ts'

describe('nodesOf', () => {
  it('is the bare addresses of a pod that has its own', () =>
    expect(nodesOf(pod('web-1', { ips: ['10.0.0.1', 'fd00::1'] }), [80])).to.deep.equal([
      '10.0.0.1',
      '[fd00::1]'
    ]))

  it('is address and port of a pod that shares its address, each once', () =>
    expect(nodesOf(pod('web-1', { hostNetwork: true, containerPorts: [80, 81] }), [81, 82])).to.deep.equal([
      '10.0.0.1:80',
      '10.0.0.1:81',
      '10.0.0.1:82'
    ]))

  it('is empty if a shared address has no known port: it must not cover other pods', () =>
    expect(nodesOf(pod('web-1', { hostNetwork: true, containerPorts: [] }), [])).to.deep.equal([]))
})
