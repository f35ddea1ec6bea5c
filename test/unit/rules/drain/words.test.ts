import { expect } from 'chai'
import * as fc from 'fast-check'
import { formatDuration, parseDuration, readOptions } from '../../../../agent/rules/drain/annotations.ts'
import { hasFixedAddress, isOfRole } from '../../../../agent/rules/drain/eligible.ts'
import { pod } from '../../../build/pod.ts'

describe('durations', () => {
  it('are read back as they were written', () =>
    fc.assert(fc.property(fc.nat(), ms => void expect(parseDuration(formatDuration(ms))).to.equal(ms))))
})

describe('annotations', () => {
  it('never throw', () =>
    fc.assert(
      fc.property(fc.string(), text => {
        const key = 'apisix-drain.io/skip'
        expect(readOptions({ [key]: text }).problems).to.have.length(
          /^\s*(true|false)\s*$/.test(text) ? 0 : 1
        )
      })
    ))
})

it('A DaemonSet or a mirror pod with hostNetwork has one address for each host', () => {
  const fixed = (owner: string | undefined, hostNetwork: boolean) =>
    hasFixedAddress(pod('web-1', { owner, hostNetwork }))
  expect(fixed('DaemonSet/web', true)).to.equal(true)
  expect(fixed('Node/host-1', true)).to.equal(true)
  expect(fixed('DaemonSet/web', false)).to.equal(false)
  expect(fixed('ReplicaSet/web-5d7f', true)).to.equal(false)
  expect(fixed(undefined, true)).to.equal(false)
})

it('A pod of a DaemonSet without a host has no role', () => {
  const waiting = pod('web-1', { workload: 'DaemonSet.apps/proxy', host: undefined })
  expect(isOfRole(waiting, waiting)).to.equal(false)
})
