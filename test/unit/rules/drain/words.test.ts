import { expect } from 'chai'
import * as fc from 'fast-check'
import { formatDuration, parseDuration, readOptions } from '../../../../agent/rules/drain/annotations.ts'
import { hasFixedAddress, isOfRole } from '../../../../agent/rules/drain/eligible.ts'
import { pod } from '../../../build/pod.ts'

describe('durations', () => {
  it('are a number and a unit', () => {
    expect(['3s', '250ms', '1.5m', '2h', '0s'].map(parseDuration)).to.deep.equal([
      3_000, 250, 90_000, 7_200_000, 0
    ])
  })

  it('are refused in any other form', () => {
    const bad = ['', '3', '-3s', '3 s', 's', '3d', '1e3s', `${'9'.repeat(30)}h`, '3s\n3s']
    expect(bad.map(parseDuration)).to.deep.equal(bad.map(() => undefined))
  })

  it('are read back as they were written', () =>
    fc.assert(fc.property(fc.nat(), ms => void expect(parseDuration(formatDuration(ms))).to.equal(ms))))
})

describe('annotations', () => {
  it('are read', () => {
    const options = readOptions({
      'apisix-drain.io/skip': 'true',
      'apisix-drain.io/reserve': ' 2s ',
      'apisix-drain.io/only-apisix': 'true',
      'apisix-drain.io/long-lived-wait': '20s',
      'apisix-drain.io/successors': 'false'
    })
    expect(options).to.deep.equal({
      skip: true,
      reserveMs: 2_000,
      longLivedMs: 20_000,
      onlyApisix: true,
      successors: false,
      problems: []
    })
  })

  it('may be absent', () => {
    const absent = {
      skip: false,
      reserveMs: undefined,
      longLivedMs: undefined,
      onlyApisix: false,
      successors: true,
      problems: []
    }
    expect(readOptions({})).to.deep.equal(absent)
  })

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
