import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import type { Clock } from '../base/clock.ts'
import type { Config } from '../config/config.ts'
import type { Log } from '../base/log.ts'
import type { Cluster } from '../kubernetes/facts/cluster.ts'
import { leasePlace } from './wire.ts'
import { createElector, alone, type Leader } from '../kubernetes/lead/elector.ts'

/** Starts the election that the configuration asks for. */
export function electLeader(config: Config, { call }: Pick<Cluster, 'call'>, clock: Clock, log: Log): Leader {
  const place = leasePlace(config)
  if (!place) return alone(noElection(config))
  // A restarted container has the same pod name, and must not treat the old Lease as its own.
  const identity = `${hostname()}_${randomUUID().slice(0, 8)}`
  return createElector({ place, identity, call, clock, log })
}

function noElection({ leader, drain }: Config): string {
  if (!leader) return 'there is no election: leader.enabled is false'
  if (drain.dryRun) return 'a dry run takes part in no election'
  return 'there is no election: outside of a cluster leader.lease must name one'
}
