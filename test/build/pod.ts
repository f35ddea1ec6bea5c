import type { PodFact, PodUid } from '../../agent/rules/drain/facts.ts'

/** A serving pod; a test states only the differences. `pod('web-1', { ips: ['10.0.0.7'], ...terminating(at, 30) })` */
export function pod(name: string, differs: Partial<PodFact> = {}): PodFact {
  return {
    uid: `uid-${name}` as PodUid,
    namespace: 'shop',
    name,
    phase: 'Running',
    ready: true,
    ips: ['10.0.0.1'],
    hostNetwork: false,
    containerPorts: [8080],
    deletionAt: undefined,
    deletionGraceMs: undefined,
    graceMs: 30_000,
    disruptionTarget: false,
    restarts: 0,
    startedAt: 0,
    owner: undefined,
    annotations: {},
    ...differs
  }
}

/** The fields of a pod whose deletion was committed at `decidedAt` (ms) with this grace. */
export const terminating = (decidedAt: number, graceSeconds = 30) => ({
  deletionAt: decidedAt + graceSeconds * 1000,
  deletionGraceMs: graceSeconds * 1000
})
