import type { Drain } from '../../rules/drain/drain.ts'
import type { Log } from '../../base/log.ts'
import type { Observer } from '../../round/observer.ts'

/** Logs one line for each step of a drain. */
export function narrate(log: Log): Observer {
  return {
    drain(before, after) {
      const drain = after ?? before
      if (!drain) return
      const { uid, pod, witnesses } = drain
      const facts = { namespace: pod.namespace, pod: pod.name, uid }
      if (!after) return log.debug(facts, 'drain forgotten')
      if (!before) log.info({ ...facts, ips: pod.ips, witnesses: Object.keys(witnesses) }, 'drain began')
      tell(log, after, facts)
    }
  }
}

function tell(log: Log, drain: Drain, facts: object): void {
  switch (drain.phase) {
    case 'draining':
      return
    case 'proven': {
      const { places, grade, why, forced } = drain.verdict
      return log[forced ? 'warn' : 'info'](
        { ...facts, places, evidence: grade, ms: Math.round(drain.at - drain.since), why },
        'drain proven'
      )
    }
    case 'expired':
      return log.warn({ ...facts, why: drain.verdict.why }, 'drain not proven')
    case 'undone':
      return log.info({ ...facts, why: drain.why }, 'drain undone')
    case 'gone':
      return log.debug(facts, 'pod gone')
  }
}
