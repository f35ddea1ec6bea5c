import { expect } from 'chai'
import { createStore as createApisix } from '../../../sandbox/apisix/store.ts'
import { createAddresses } from '../../../sandbox/kubelet/addresses.ts'
import { createStore } from '../../../sandbox/kubernetes/store.ts'
import { createJudge } from '../../build/judge.ts'
import { createPods } from '../../build/pods.ts'

const GRACE_MS = 1000
const STALL_MS = 800

describe('fault suite: a hook that is answered late', () => {
  /** Judges a hook that is answered `lateMs` after its deadline, in a process that was paused during the reserve. */
  const judged = (lateMs: number) => {
    const kubernetes = createStore()
    const pods = createPods(kubernetes, createAddresses())
    const judge = createJudge({ kubernetes, apisix: createApisix(), byHand: () => true, reserveMs: GRACE_MS })
    const pod = pods.pod('web-1', { graceSeconds: GRACE_MS / 1000 })
    pods.end(pod)
    judge.ended(pod)
    const calledAt = performance.now()
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, STALL_MS)
    const at = calledAt + GRACE_MS + lateMs
    const ms = at - calledAt
    judge.answered(pod, { status: 503, body: { error: 'no-answer' }, calledAt, at, ms, ranMs: ms })
    return judge.violations()
  }

  it('is not late by the time in which this process did not run, in all of the reserve', () => {
    expect(judged(STALL_MS - 100)).to.deep.equal([])
  })

  it('is late by the rest, and the report quotes its answer', () => {
    expect(judged(STALL_MS + 200).join()).to.match(
      /^the hook of web-1 was answered \d+ ms after its deadline, 2000 ms after its call: 503 no-answer$/
    )
  })
})
