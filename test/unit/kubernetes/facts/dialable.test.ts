import { expect } from 'chai'
import { isDialable, isLocal, gatewayPodReader } from '../../../../agent/kubernetes/facts/gateway-store.ts'

describe('addresses at which a gateway may be called', () => {
  for (const address of [
    '10.0.0.1',
    '192.168.7.7',
    '172.16.0.9',
    '100.64.0.1',
    '203.0.113.9',
    'fd00::1',
    '2001:db8::1'
  ])
    it(`${address} is called`, () => expect(isDialable(address, false)).to.equal(true))

  const hostile = [
    '169.254.169.254',
    '169.254.170.2',
    'fe80::1',
    'fd00:ec2::254',
    '0.0.0.0',
    '255.255.255.255',
    '224.0.0.1',
    'ff02::1',
    '::',
    '::ffff:169.254.169.254',
    '::ffff:a9fe:a9fe',
    '0:0:0:0:0:ffff:a9fe:a9fe',
    '',
    'metadata.google.internal',
    'localhost',
    '10.0.0.1:9180',
    '10.0.0.1/x',
    '10.0.0.1@evil.example',
    '0x7f000001',
    '2130706433',
    '010.0.0.1',
    '10.1',
    ' 10.0.0.1',
    '10.0.0.1\r\nHost: x',
    'fd00::1%eth0'
  ]
  for (const address of hostile) {
    it(`${JSON.stringify(address)} is never called`, () =>
      expect([isDialable(address, true), isDialable(address, false)]).to.deep.equal([false, false]))
  }

  for (const address of ['127.0.0.1', '127.9.9.9', '::1', '::ffff:127.0.0.1'])
    it(`${address} is called only if the whole cluster is on this machine`, () => {
      expect([isDialable(address, false), isDialable(address, true)]).to.deep.equal([false, true])
    })

  it('detects a cluster on this machine by its API server', () => {
    for (const origin of ['https://127.0.0.1:6443', 'https://[::1]:6443', 'http://localhost:8001'])
      expect(isLocal(origin), origin).to.equal(true)
    for (const origin of ['https://10.96.0.1', 'https://[fd00::1]', 'https://localhost.example:6443'])
      expect(isLocal(origin), origin).to.equal(false)
  })

  it('ignores a pod whose status names an address outside, and waits for a pod without an address', () => {
    const read = gatewayPodReader(false)
    const pod = (ip: string | undefined) => ({
      metadata: { uid: 'u', name: 'apisix-0', namespace: 'apisix' },
      status: { phase: 'Running', ...(ip !== undefined && { podIP: ip }) }
    })
    expect(read(pod('169.254.169.254'))).to.equal(undefined)
    expect(read(pod('127.0.0.1'))).to.equal(undefined)
    expect(read(pod('10.0.0.7'))?.gateway.ip).to.equal('10.0.0.7')
    expect(read(pod(undefined))?.gateway.ip).to.equal('')
  })
})
