import { Agent } from 'node:http'
import { expect } from 'chai'
import { createAddresses } from '../../../sandbox/kubelet/addresses.ts'
import { startBackend } from '../../build/backend.ts'
import { get } from '../../build/load.ts'

describe('fault suite: a pod that ends', () => {
  it('has read everything sent to it before its end, however long this process was paused (a process accepts one connection at a time)', async () => {
    const ip = createAddresses().allocate()
    const backend = await startBackend('web-1', ip, 28080)
    const agent = new Agent()
    try {
      const url = `http://${ip}:28080/`
      const sent = Array.from({ length: 30 }, () => get(url, agent).catch((error: Error) => error.message))
      // After this turn of the event loop, all connections are in the queue, and the backend has accepted the first ones.
      await new Promise(resolve => setImmediate(resolve))
      await backend.caughtUp()
      await backend.terminate()
      await backend.close()
      const answers = await Promise.all(sent)
      expect(answers.filter(one => typeof one === 'string')).to.deep.equal([])
      expect(backend.arrivals).to.have.lengthOf(30)
    } finally {
      agent.destroy()
      await backend.close()
    }
  })
})
