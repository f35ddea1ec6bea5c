import { APP, NAMESPACE } from '../../sandbox/manifests.ts'
import { isRolledOut, rollOut } from '../../sandbox/rollout.ts'
import { waitFor } from '../../sandbox/wait-for.ts'
import type { World } from '../../sandbox/world.ts'

/** Changes that end pods, as users and controllers make them. */
export const CHANGES = ['rolling update', 'scaled', 'pods deleted'] as const
export type Change = (typeof CHANGES)[number]

const REPLICAS = [2, 3, 4, 6, 8, 10]
/** Strategies of a rolling update: surge only, in place only, and the default of Kubernetes. */
const STRATEGIES = [
  { maxSurge: '25%', maxUnavailable: '25%' },
  { maxSurge: 1, maxUnavailable: 0 },
  { maxSurge: 0, maxUnavailable: 1 },
  { maxSurge: '100%', maxUnavailable: 0 }
] as const

/** Makes one change, drawn from `random`, and waits until it is complete. Rejects after two minutes. */
export async function change({ kubernetes, kubelet }: World, random: () => number): Promise<Change> {
  const draw = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T
  const { store } = kubernetes
  const kind = draw(CHANGES)
  const alive = () => kubelet.records().filter(({ goneAt }) => goneAt === undefined)
  // Each change draws all three values, even unused ones. So the next change does not depend on the kind of this change.
  const [rollingUpdate, replicas, share] = [draw(STRATEGIES), draw(REPLICAS), random()]
  if (kind === 'rolling update') {
    store.modify('deployments', NAMESPACE, APP, current => ({
      ...current,
      spec: { ...current.spec, strategy: { type: 'RollingUpdate' as const, rollingUpdate } }
    }))
    await rollOut({ store, kubelet })
    return kind
  }
  if (kind === 'scaled')
    store.modify('deployments', NAMESPACE, APP, current => ({
      ...current,
      spec: { ...current.spec, replicas }
    }))
  const all = alive()
  // Some pods stay: if all were deleted at once, no pod could serve requests.
  const ending = kind === 'scaled' ? [] : all.slice(0, Math.ceil(share * (all.length - 1)))
  for (const { name } of ending) store.delete('pods', NAMESPACE, name)
  const wanted = () => store.get('deployments', NAMESPACE, APP)?.spec.replicas
  await waitFor(
    `${kind} is through`,
    () =>
      isRolledOut(store) && alive().length === wanted() && ending.every(({ goneAt }) => goneAt !== undefined)
  )
  return kind
}
