import type { Grade, HolderReport } from '../../rules/drain/drain.ts'
import type { GatewayView } from '../../report/snapshot/snapshot.ts'
import type { Lane, Standing } from './lanes.ts'

/** The kind of a state, which selects shape and colour. Shape and label suffice without the colour. */
export type Tone = 'good' | 'busy' | 'bad' | 'plain'

/** A state in plain words, and its meaning. */
export interface Words {
  readonly tone: Tone
  readonly label: string
  readonly title: string
}

export const STANDING: Readonly<Record<Standing, Words>> = {
  waiting: { tone: 'busy', label: 'waiting', title: 'The drain still waits for evidence. Its hook is held.' },
  kept: {
    tone: 'busy',
    label: 'last endpoint',
    title:
      'Held as planned: it is the last endpoint, and stays in use until another pod serves, for 60 s at most.'
  },
  proved: { tone: 'good', label: 'proved', title: 'The evidence is complete.' },
  unproved: { tone: 'bad', label: 'not proved', title: 'The deadline came before the evidence.' },
  unlisted: {
    tone: 'plain',
    label: 'not listed',
    title:
      'No object of APISIX listed the pod, and it called no hook. It ended before the gateways confirmed that.'
  },
  undone: { tone: 'plain', label: 'undone', title: 'The pod stays: its container had only restarted.' }
}

/** The evidence of a drain that is over, or of one gateway. Only `barrier` is a proof. */
export const GRADES: Readonly<Record<Grade, Words>> = {
  barrier: {
    tone: 'good',
    label: 'proved',
    title:
      'Evidence "barrier": the gateway has sealed the pod, and counted that no request to it is in flight.'
  },
  observed: {
    tone: 'busy',
    label: 'only observed',
    title:
      'Evidence "observed": the gateway was seen to list the pod no more. Requests in flight are not counted.'
  }
}

/** The state of a drain, or the evidence of one that is proved. */
export const wordsOf = ({ standing, drain: { verdict } }: Lane): Words =>
  standing === 'proved' && verdict?.grade ? GRADES[verdict.grade] : STANDING[standing]

/** The state of a gateway now. `unreachable`: the last call to its barrier, or to its Control API without one, failed. */
export function gatewayState({
  ready,
  terminating,
  barrier,
  control
}: Pick<GatewayView, 'ready' | 'terminating' | 'barrier' | 'control'>): {
  readonly tone: Tone
  readonly label: 'ending' | 'not ready' | 'unreachable' | 'ready'
} {
  const asked = barrier ?? control
  if (terminating) return { tone: 'busy', label: 'ending' }
  if (!ready) return { tone: 'bad', label: 'not ready' }
  if (asked?.problem && (asked.lastSuccessAt ?? 0) < (asked.lastAttemptAt ?? 0))
    return { tone: 'bad', label: 'unreachable' }
  return { tone: 'good', label: 'ready' }
}

/** The evidence that a gateway can give now. */
export const availableWords = ({ available }: Pick<GatewayView, 'available'>): Words =>
  available === null
    ? { tone: 'bad', label: 'proves nothing', title: 'While this gateway cannot be asked, hooks get a 503.' }
    : { ...GRADES[available], label: available === 'barrier' ? 'can prove' : 'can only be observed' }

export const HOLDER_STATES: Readonly<Record<HolderReport['state'], Words>> = {
  listed: { tone: 'busy', label: 'still lists it', title: 'The removal has not begun.' },
  writing: { tone: 'busy', label: 'removal is being written', title: 'The agent waits for the Admin API.' },
  removed: { tone: 'good', label: 'removed', title: 'The object does not list the pod any more.' },
  'kept-last': {
    tone: 'busy',
    label: 'kept: its last node',
    title: 'No other node of the object serves, so the agent removes none.'
  },
  foreign: {
    tone: 'busy',
    label: 'cannot be edited',
    title:
      'The agent edits no such place: APISIX finds its nodes by discovery, or in another way that is not a list.'
  },
  'dry-run': {
    tone: 'plain',
    label: 'dry run: not removed',
    title: 'drain.dryRun is on: nothing is written.'
  },
  failed: {
    tone: 'bad',
    label: 'removal failed',
    title: 'The Admin API refused the removal, or did not answer.'
  }
}
