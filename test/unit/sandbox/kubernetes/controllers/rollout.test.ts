import { expect } from 'chai'
import * as fc from 'fast-check'
import type { Deployment, Pod } from '../../../../../sandbox/kubernetes/objects.ts'
import { isActive, isReady } from '../../../../../sandbox/kubernetes/controllers/owned.ts'
import { startControllers } from '../../../../../sandbox/kubernetes/controllers/start.ts'
import { boundsOf, newSetSize, type Arm } from '../../../../../sandbox/kubernetes/controllers/rollout.ts'
import { createStore } from '../../../../../sandbox/kubernetes/store.ts'
import { deployment, turns } from './workload.ts'

const bounds = (replicas: number, maxSurge: number | string, maxUnavailable: number | string) =>
  boundsOf(
    deployment('web', { replicas, strategy: { rollingUpdate: { maxSurge, maxUnavailable } } }) as Deployment
  )

const arm = (id: string, wanted: number, available = wanted, actual = wanted): Arm => ({
  id,
  wanted,
  available,
  actual
})

describe('sandbox/kubernetes rollout', () => {
  it('rounds maxSurge up and maxUnavailable down, and never lets both be 0', () => {
    expect(bounds(10, '25%', '25%')).to.deep.equal({ replicas: 10, maxSurge: 3, maxUnavailable: 2 })
    expect(bounds(3, 0, '10%')).to.deep.equal({ replicas: 3, maxSurge: 0, maxUnavailable: 1 })
    expect(bounds(3, 1, 0)).to.deep.equal({ replicas: 3, maxSurge: 1, maxUnavailable: 0 })
    expect(bounds(2, '100%', 5)).to.deep.equal({ replicas: 2, maxSurge: 2, maxUnavailable: 2 })
  })
  it('grows the new set up to maxSurge, and never beyond the wanted number', () => {
    expect(newSetSize(arm('n', 0), [arm('o', 4)], bounds(4, 1, 0))).to.equal(1)
    expect(newSetSize(arm('n', 0), [arm('o', 4)], bounds(4, 0, 1))).to.equal(0)
    expect(newSetSize(arm('n', 0), [], bounds(4, 1, 0))).to.equal(4)
    expect(newSetSize(arm('n', 6), [], bounds(4, 1, 0))).to.equal(4)
    expect(newSetSize(arm('n', 1), [arm('o', 3, 4, 4)], bounds(4, 1, 0))).to.equal(1)
  })

  it('never has too few available nor too many pods, in whatever order pods become ready and go (law)', async () => {
    const plan = fc.record({
      replicas: fc.integer({ min: 1, max: 7 }),
      maxSurge: fc.oneof(fc.integer({ min: 0, max: 3 }), fc.constantFrom('0%', '25%', '50%', '100%')),
      maxUnavailable: fc.oneof(fc.integer({ min: 0, max: 3 }), fc.constantFrom('0%', '25%', '50%', '100%')),
      choices: fc.array(fc.nat(1000), { minLength: 10, maxLength: 10 }),
      updates: fc.integer({ min: 1, max: 3 })
    })
    await fc.assert(
      fc.asyncProperty(plan, async ({ replicas, maxSurge, maxUnavailable, choices, updates }) => {
        const store = createStore()
        const controllers = startControllers(store)
        const draft = deployment('web', {
          replicas,
          strategy: { rollingUpdate: { maxSurge, maxUnavailable } }
        })
        const limits = boundsOf(draft as Deployment)
        store.create('deployments', draft)
        const pending = () =>
          store.list('pods').filter(pod => isActive(pod) && !isReady(pod) && pod.spec.nodeName)
        const ending = () => store.list('pods').filter(({ metadata }) => metadata.deletionTimestamp)
        const ready = ({ metadata }: Pod) =>
          store.patchStatus('pods', 'default', metadata.name, {
            phase: 'Running',
            conditions: [{ type: 'Ready', status: 'True' }]
          })
        await turns(6)
        for (const pod of pending()) ready(pod)
        await turns(6)
        expect(store.list('pods').filter(isReady)).to.have.length(replicas)

        let worst = { available: replicas, total: replicas }
        const stop = store.onChange('pods', () => {
          const active = store.list('pods').filter(isActive)
          worst = {
            available: Math.min(worst.available, active.filter(isReady).length),
            total: Math.max(worst.total, active.length)
          }
        })
        let step = 0
        const choose = () => choices[(step += 1) % choices.length]!
        for (let version = 2; version < 2 + updates; version += 1) {
          store.modify('deployments', 'default', 'web', now => ({
            ...now,
            spec: { ...now.spec, template: deployment('web', {}, version).spec.template }
          }))
          // Some updates come in the middle of the previous one.
          const steps = version === 1 + updates ? 300 : choose() % 8
          for (let i = 0; i < steps; i += 1) {
            await turns(choose() % 5)
            const acts = [
              ...pending().map(pod => () => ready(pod)),
              ...ending().map(
                ({ metadata }) =>
                  () =>
                    store.delete('pods', 'default', metadata.name, { gracePeriodSeconds: 0 })
              )
            ]
            if (acts.length > 0) acts[choose() % acts.length]!()
            else if (i > 60) break
          }
        }
        await turns(10)
        stop()
        controllers.stop()
        expect(worst.available).to.be.at.least(replicas - limits.maxUnavailable)
        expect(worst.total).to.be.at.most(replicas + limits.maxSurge)
        const images = store
          .list('pods')
          .filter(isActive)
          .map(({ spec }) => spec.containers[0]!.image)
        expect(images).to.deep.equal(Array.from({ length: replicas }, () => `app:${1 + updates}`))
      }),
      { numRuns: 60 }
    )
  })
})
