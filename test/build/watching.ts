import { pino } from 'pino'
import { createIdentity } from '../../agent/gateway/barrier/gateway-state.ts'
import { toPodFact } from '../../agent/kubernetes/facts/pod-fact.ts'
import { createPodStore } from '../../agent/kubernetes/facts/pod-store.ts'
import { createIntake } from '../../agent/kubernetes/reflect/follow.ts'
import { createNextStep, Doubted } from '../../agent/kubernetes/reflect/watch-status.ts'
import { ApiError } from '../../agent/kubernetes/transport/objects.ts'
import { manualClock } from './manual-clock.ts'

const FAILURES: Readonly<Record<string, Error>> = {
  expired: new ApiError('watch pods', 410, {}),
  broken: new Error('the connection broke'),
  doubted: new Doubted('the watch is silent')
}

/** What a reflector does next, after each event: `listed`, `heard`, or a failure and the revision that the watch has reached. */
export function stepping(given: { events: readonly string[] }) {
  const next = createNextStep()
  return given.events.map(event => {
    const [what = '', revision] = event.split(' ')
    const failure = FAILURES[what]
    if (failure) next.failed(failure, revision)
    else if (what === 'listed') next.listed()
    else next.heard()
    const step = next.step()
    return step.does === 'watch' ? 'watch' : `list${step.from === undefined ? '' : ` from ${step.from}`}`
  })
}

/**
 * The pods that a watch knows, after each event: `set`, `gone` and `learn` (a direct read) with the revision of the pod `db-0`, its uid
 * (default: `u`), and `unready`; `begin` and `end` of a list; `bad` objects that cannot be read.
 */
export function taking(given: { events: readonly string[] }) {
  const { store, sink } = createPodStore(manualClock())
  let [changes, lines] = [0, 0]
  const log = pino({}, { write: () => void (lines += 1) })
  const intake = createIntake(toPodFact, sink, () => (changes += 1), log)
  const uids = new Set<string>()
  return given.events.map(event => {
    const before = changes
    const [what, revision = '', ...words] = event.split(' ')
    const uid = words.find(word => word !== 'unready') ?? 'u'
    const status = words.includes('unready') ? 'False' : 'True'
    const pod = {
      metadata: { name: 'db-0', namespace: 'shop', uid, resourceVersion: revision },
      status: { phase: 'Running', podIP: '10.0.0.1', conditions: [{ type: 'Ready', status }] }
    }
    if (what === 'begin') intake.beginList()
    else if (what === 'end') intake.endList(revision)
    else if (what === 'bad') {
      for (const bad of [{ metadata: { ...pod.metadata, deletionTimestamp: 'soon' } }, null, {}, 'text'])
        intake.set(bad)
      intake.gone(undefined)
      intake.learn({})
    } else {
      uids.add(uid)
      intake[what as 'set' | 'gone' | 'learn'](pod)
    }
    const known = [...store.values()].map(one => `${one.uid}${one.ready ? '' : ' unready'}`)
    const gone = [...uids].filter(one => store.gone(one as never)).map(one => `${one} gone`)
    const logged =
      what === 'bad' || what === 'end'
        ? [`${lines} logged`, ...(changes === before ? ['no change'] : [])]
        : []
    return [...known, ...gone, ...logged].join(', ') || 'none'
  })
}

/**
 * Whether an address leads to one gateway, by the instances that answered. `A` and `b`: an instance that is fit, and one that is not, each asked
 * 10 ms after the last one and answered in 5 ms; `A 15-30`: at these times. A number repeats the answer; `-`: no answer. `kept`: on kept connections.
 */
export function identifying(given: {
  answers: readonly string[] | string
  byHand?: boolean
  kept?: boolean
}) {
  const identity = createIdentity(given.byHand ?? false)
  const list = typeof given.answers === 'string' ? given.answers.split('') : given.answers
  let at = 0
  for (const answer of list) {
    const [, name = '', from, to, times = 1] = /^(.)(?: (\d+)-(\d+))?(?: ×(\d+))?$/.exec(answer) ?? []
    for (let i = 0; i < Number(times); i += 1) {
      const [askedAt, heardAt] = from === undefined ? [at, at + 5] : [Number(from), Number(to)]
      at += 10
      const instance = name.toUpperCase()
      if (name === '-') identity.unanswered()
      else identity.note({ instance, fit: name === instance }, askedAt, heardAt, !given.kept)
    }
  }
  return [identity.doubt() || 'one', ...(identity.isOpen() ? ['polled on'] : [])].join(', ')
}
