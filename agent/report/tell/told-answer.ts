import { z } from 'zod'
import type { Ack } from '../../rules/drain/ack.ts'
import type { ToldAnswers } from '../../gateway/barrier/entry-table.ts'
import type { PodUid } from '../../rules/drain/facts.ts'
import type { AckView } from '../snapshot/drain-view.ts'

const MOST_WHY = 200

/** Other agents, and whoever else has the token of a gateway, write this text: it is shown, and nothing rests on it. */
const told = z.object({
  namespace: z.string().max(63),
  pod: z.string().max(253),
  status: z.literal([200, 503]),
  result: z.string().regex(/^[a-z-]{1,32}$/),
  evidence: z.enum(['barrier', 'observed', 'none']),
  why: z.string().max(MOST_WHY),
  elapsedMs: z.number().min(0),
  by: z.string().max(253)
})

/** The answers that this agent tells, and those that it has read, as views. Ages, because the clocks of agents differ. */
export interface Answers extends ToldAnswers {
  note(ack: Ack, at: number): void
  /** What other agents, or this one before its restart, have answered. Each is returned once. */
  take(): readonly AckView[]
}

/** An answer is told for this long, in ms: until then its entry is in every gateway, or it has none. */
const TOLD_MS = 600_000
/** The most answers of others that are remembered. */
const MOST = 2000

/** @param by the name of this agent */
export function createAnswers(by: string): Answers {
  const own = new Map<PodUid, { readonly at: number; readonly text: string }>()
  const known = new Set<string>()
  let heard: AckView[] = []
  return {
    own,
    note(ack, at) {
      for (const [uid, told] of own) if (told.at < at - TOLD_MS) own.delete(uid)
      const uid = ack.pod.uid as PodUid
      if (!own.has(uid)) own.set(uid, { at, text: textOf(ack, by) })
    },
    read(list, askedAt) {
      for (const { uid, answer, answeredFor = 0 } of list) {
        if (answer === undefined || known.has(uid) || own.has(uid as PodUid)) continue
        known.add(uid)
        if (known.size > MOST) known.delete(known.values().next().value!)
        heard.push(...answerOf({ uid, text: answer, at: askedAt - answeredFor * 1000 }))
      }
    },
    take() {
      const taken = heard
      heard = []
      return taken
    }
  }
}

/** An answer as the text that a gateway passes on to the other agents: at most 1024 bytes. */
export function textOf({ pod, status, result, evidence, why, elapsedMs }: Ack, by: string): string {
  const { namespace, name } = pod
  const one = { namespace, pod: name, status, result, evidence, elapsedMs: Math.round(elapsedMs), by }
  const text = JSON.stringify({ ...one, why: why.slice(0, MOST_WHY) })
  return Buffer.byteLength(text) <= 1024 ? text : JSON.stringify({ ...one, why: '' })
}

interface Heard {
  readonly uid: string
  readonly text: string
  readonly at: number
}

/** The answer of another agent; empty if the text is not one. */
function answerOf({ uid, text, at }: Heard): readonly AckView[] {
  const { success, data } = told.safeParse(parsed(text))
  if (!success) return []
  const { namespace, pod: name, by, ...rest } = data
  return [{ at, by, ack: { pod: { namespace, name, uid }, ...rest } }]
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
