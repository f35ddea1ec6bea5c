import type { Backend } from './backend.ts'
import type { PodOptions, TestPod } from './pods.ts'
import type { Rig } from './rig.ts'

/** Two pods in the upstream `web`. Resolves when every gateway has applied that. Tests end the first pod. */
export async function pair(rig: Rig, first: PodOptions = {}): Promise<readonly [TestPod, TestPod]> {
  const pods = [rig.pod('web-1', first), rig.pod('web-2')] as const
  rig.upstream('web', pods)
  await rig.settled()
  return pods
}

/** These pods serve, and the agent knows that the upstream `web` lists them. Returns their backends. */
export async function serving<Pods extends readonly TestPod[]>(rig: Rig, ...pods: Pods) {
  const backends: Backend[] = []
  for (const pod of pods) backends.push(await rig.serve(pod))
  rig.upstream('web', pods)
  await rig.settled('web', pods.length)
  return backends as { readonly [Pod in keyof Pods]: Backend }
}
