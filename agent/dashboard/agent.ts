import { useEffect, useState } from 'preact/hooks'
import type { Snapshot } from '../report/snapshot/snapshot.ts'

export type Link = 'connecting' | 'live' | 'lost'

/** All that the page shows. */
export interface Shown {
  readonly link: Link
  readonly snapshot: Snapshot | undefined
  /** When the snapshot arrived, by `performance.now()`. */
  readonly receivedAt: number
}

/** All that the page shows, from an agent that it asks as long as the page lasts. */
export function useAgent(): Shown {
  const [shown, set] = useState<Shown>({ link: 'connecting', snapshot: undefined, receivedAt: 0 })
  useEffect(() => void follow(differs => set(before => ({ ...before, ...differs }))), [])
  return shown
}

/** The pause between two requests, and the longest time for an answer, in ms. */
const PAUSE_MS = 1000
const ANSWER_MS = 5000

async function follow(show: (differs: Partial<Shown>) => void): Promise<never> {
  for (;;) {
    try {
      const answer = await fetch('api/state', { signal: AbortSignal.timeout(ANSWER_MS) })
      // The session has expired, or the token was changed: the page is the login then.
      if (answer.status === 401) location.reload()
      if (!answer.ok) throw new Error(answer.statusText)
      const snapshot = (await answer.json()) as Snapshot
      show({ snapshot, receivedAt: performance.now(), link: 'live' })
    } catch {
      show({ link: 'lost' })
    }
    await new Promise(resolve => setTimeout(resolve, PAUSE_MS))
  }
}

const still = matchMedia('(prefers-reduced-motion: reduce)')
const TICK_MS = 100

/** Redraws ten times a second while something grows; once a second if the user prefers less motion. */
export function useTick(growing: boolean): void {
  const [, set] = useState(0)
  useEffect(() => {
    if (!growing) return undefined
    const timer = setInterval(() => set(n => n + 1), still.matches ? 1000 : TICK_MS)
    return () => clearInterval(timer)
  }, [growing])
}

/** The agent's time now, in ms, estimated by the page; 0 before the first snapshot. */
export const agentNow = ({ snapshot, receivedAt }: Shown): number =>
  snapshot ? snapshot.at + performance.now() - receivedAt : 0

export const DARK = matchMedia('(prefers-color-scheme: dark)')

export function useMedia(query: MediaQueryList): boolean {
  const [matches, set] = useState(query.matches)
  useEffect(() => {
    const follow = () => set(query.matches)
    query.addEventListener('change', follow)
    return () => query.removeEventListener('change', follow)
  }, [query])
  return matches
}
