import type { PodFact, PodUid } from '../../agent/rules/drain/facts.ts'

/** The workload of a controller; the last part of a ReplicaSet's name is the hash of its template. */
const workloadOf = (owner: string): string => {
  const [kind = '', name = ''] = owner.split('/')
  if (kind === 'ReplicaSet') return `ReplicaSet.apps/${name.replace(/[^-]*$/, '<pod-template-hash>')}`
  return kind === 'Node' || kind === 'ReplicationController' ? owner : `${kind}.apps/${name}`
}

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
    runs: 'app=1',
    startedAt: 0,
    owner: undefined,
    ...(differs.owner && { workload: workloadOf(differs.owner) }),
    host: 'host-1',
    annotations: {},
    ...differs
  }
}

/** The fields of a pod whose deletion was committed at `decidedAt` (ms) with this grace. */
export const terminating = (decidedAt: number, graceSeconds = 30) => ({
  deletionAt: decidedAt + graceSeconds * 1000,
  deletionGraceMs: graceSeconds * 1000
})
