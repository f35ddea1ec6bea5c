import { useEffect, useState } from 'preact/hooks'
import type { Shown, Store } from './store.ts'

export function useShown(store: Store): Shown {
  const [shown, set] = useState(() => store.get())
  useEffect(() => store.subscribe(() => set(store.get())), [store])
  return shown
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

/** The agent's clock, as far as the page can tell. */
export const agentNow = ({ snapshot, receivedAt }: Shown): number =>
  snapshot ? snapshot.at + performance.now() - receivedAt : 0
