import type { BarrierState } from '../../agent/gateway/apisix/barrier-wire.ts'
import type { DesiredEntry } from '../../agent/gateway/barrier/desired-entry.ts'
import { createEntryTable } from '../../agent/gateway/barrier/entry-table.ts'
import type { PodUid } from '../../agent/rules/drain/facts.ts'

/** A state of an entry in the gateway. `said` of `asked` workers gave a word, in which they looked for so many `ways`. */
type Draft = Partial<Omit<BarrierState, 'inflight' | 'word'>> & {
  requests?: number
  said?: number
  asked?: number
  ways?: number
}

interface Step {
  readonly now?: number
  /** Entries by uid; `null`: no longer desired. */
  readonly desire?: Readonly<Record<string, Partial<DesiredEntry> | null>>
  /** Answers of hooks, by uid, each with its time. */
  readonly answers?: Readonly<Record<string, number>>
  /** Puts what is due. The gateway answers with these states. */
  readonly put?: readonly Draft[]
  readonly refused?: readonly string[]
  readonly stale?: boolean
  /** The gateway reports these states; `askedAt`: default `now`. */
  readonly reported?: readonly Draft[]
  readonly askedAt?: number
  /** The gateway lists these states, or may hold these entries. */
  readonly compare?: readonly Draft[]
  readonly sent?: readonly string[]
  readonly lifted?: readonly string[]
  readonly failed?: string
  readonly restarted?: string
  readonly forget?: true
  /** Asks whether a put of this entry has the field `successors`. */
  readonly tells?: Partial<DesiredEntry>
  /** What is shown after the step. */
  readonly see?: string
}

const TTL = 30_000
const entryOf = (uid: string, differs: Partial<DesiredEntry> = {}): DesiredEntry => ({
  uid: uid as PodUid,
  nodes: ['10.0.0.1'],
  state: 'sealed',
  watch: true,
  ...differs
})
function stateOf({ requests = 0, said, asked = said, ways = 0, ...differs }: Draft): BarrierState {
  const none = { places: 0, hidden: 0, sole: [], succeeded: [], others: [], cut: 0 }
  const word = { said: said!, asked: asked!, ...none, ways: { asked: ways, found: [], more: 0 } }
  const state = { uid: 'a', ip: '10.0.0.1', state: 'sealed', ttl: 30, bypasses: 0, late: 0 } as const
  const told = said !== undefined && { word: { ...word, ...(said === asked && { tag: 't' }) } }
  return { ...state, inflight: { requests, long: 0 }, ...told, ...differs }
}

/** The entries of one gateway with a ttl of 30 s, step by step. Unless a case states otherwise, the entry `a` is desired, and sealed. */
export function tabling(given: { readonly entry?: Partial<DesiredEntry>; readonly steps: readonly Step[] }) {
  const desired = new Map([['a' as PodUid, entryOf('a', given.entry)]])
  const answers = new Map<PodUid, { readonly at: number; readonly text: string }>()
  const table = createEntryTable(TTL, () => desired, 0, answers)
  const uids = (list: Iterable<Pick<DesiredEntry, 'uid'>>) =>
    [...list].map(({ uid }) => uid).join(' ') || 'none'
  const play = (step: Step, now: number): string | undefined => {
    const receipt = { at: now, instance: 'i', fit: true }
    for (const [uid, differs] of Object.entries(step.desire ?? {}))
      if (differs) desired.set(uid as PodUid, entryOf(uid, differs))
      else desired.delete(uid as PodUid)
    for (const [uid, at] of Object.entries(step.answers ?? {})) answers.set(uid as PodUid, { at, text: 'x' })
    if (step.put) {
      const due = table.due(now)
      table.sent(due, now)
      const answer = {
        entries: step.put.map(stateOf),
        refused: new Set(step.refused),
        why: 'no room',
        sentAt: now
      }
      table.put(due, answer, receipt, step.stale ?? false)
      return `put: ${uids(due)}`
    }
    if (step.reported)
      table.reported(
        [...desired.values()],
        { entries: step.reported.map(stateOf) },
        receipt,
        step.askedAt ?? now
      )
    if (step.sent)
      table.sent(
        step.sent.map(uid => entryOf(uid)),
        now
      )
    if (step.lifted) table.lifted(step.lifted as PodUid[])
    if (step.failed !== undefined) table.failed(step.failed, now)
    if (step.restarted !== undefined) table.restarted(step.restarted)
    if (step.forget) table.forget()
    if (step.tells) return `tells: ${table.tellsSuccessors(entryOf('a', step.tells), now)}`
    return step.compare && `differs: ${table.compare(step.compare.map(stateOf), step.askedAt ?? now)}`
  }
  const seen = (what: string, now: number): string => {
    const reading = table.reading('a' as PodUid)
    const all: Readonly<Record<string, () => string | number | boolean>> = {
      due: () => uids(table.due(now)),
      over: () => table.over(now).join(' ') || 'none',
      shrunk: () => uids(table.shrunk(table.due(now))),
      renewAt: () => table.renewAt(),
      movedAt: () => table.movedAt(),
      untold: () => table.isUntold(),
      watched: () => `${uids(table.watched(true))} by long polls, ${uids(table.watched(false))} by others`,
      word: () => (reading?.word ? (reading.word.complete ? 'complete' : 'not complete') : 'none'),
      times: () =>
        `sealed at ${reading?.sealedAt}, idle at ${reading?.idleAt}, unchanged since ${reading?.unchangedSince}`,
      reading: () =>
        reading
          ? [
              reading.entry,
              reading.instance,
              ...(reading.readAfterSeal ? ['after the seal'] : []),
              reading.problem
            ]
              .filter(Boolean)
              .join(', ')
          : 'none'
    }
    return `${what}: ${all[what]?.() ?? 'unknown'}`
  }
  return given.steps.flatMap(step => {
    const { now = 0, see } = step
    const told = play(step, now)
    const shown = see?.split(' ').map(what => seen(what, now)) ?? []
    const lines = [...(told === undefined ? [] : [told]), ...shown]
    return lines.length > 0 ? [lines.join('; ')] : []
  })
}
