import { CodedError } from '../../base/errors.ts'
import type { BarrierAnswer, BarrierEntry } from './barrier-wire.ts'

/** The most entries in one request, and the most uids (docs/barrier-api.md). */
const BATCH = 1000

/** Splits uids into batches. Returns at least one batch, so that a gateway is asked even if there are no uids. */
export function batches(uids: readonly string[]): string[][] {
  const all: string[][] = [uids.slice(0, BATCH)]
  for (let from = BATCH; from < uids.length; from += BATCH) all.push(uids.slice(from, from + BATCH))
  return all
}

/** The most addresses in one body of at most 1 MiB. In JSON an address has at most 50 bytes; the rest of an entry counts as 8 addresses. */
const MOST_ADDRESSES = 18_000
const ADDRESSES_AN_ENTRY = 8

/** Splits entries into requests of the size that the plugin accepts. */
export function putBatches(entries: readonly BarrierEntry[]): BarrierEntry[][] {
  const all: BarrierEntry[][] = []
  let room = 0
  for (const entry of entries) {
    const addresses = Object.values(entry.successors ?? {}).reduce((sum, { length }) => sum + length, 0)
    const needed = addresses + ADDRESSES_AN_ENTRY + Math.ceil((entry.answer?.length ?? 0) / 16)
    const last = all.at(-1)
    if (last && last.length < BATCH && needed <= room) last.push(entry)
    else {
      all.push([entry])
      room = MOST_ADDRESSES
    }
    room -= needed
  }
  return all
}

/** One answer made from the answers to several batches. @throws CodedError if the gateway restarted between two answers */
export function merged(answers: readonly BarrierAnswer[]): BarrierAnswer {
  const [{ wire, instance }, ...rest] = answers as [BarrierAnswer, ...BarrierAnswer[]]
  if (rest.some(answer => answer.instance !== instance))
    throw new CodedError('BARRIER_UNAVAILABLE', 'the gateway restarted between two batches')
  const fit = answers.every(answer => answer.fit)
  const now = answers.at(-1)?.now ?? 0
  return { wire, instance, fit, now, entries: answers.flatMap(({ entries }) => entries) }
}
