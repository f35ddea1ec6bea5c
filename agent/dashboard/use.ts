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

/** The agent's time now, in ms, estimated by the page; 0 before the first snapshot. */
export const agentNow = ({ snapshot, receivedAt }: Shown): number =>
  snapshot ? snapshot.at + performance.now() - receivedAt : 0

const phone = matchMedia('(max-width: 600px)')
const paper = matchMedia('print')

/** Whether the page is as narrow as a phone, so that a row needs several lines. */
export const useNarrow = (): boolean => useMedia(phone)

/** Whether the page is being printed. */
export const usePrinting = (): boolean => useMedia(paper)

function useMedia(query: MediaQueryList): boolean {
  const [matches, set] = useState(query.matches)
  useEffect(() => {
    const follow = () => set(query.matches)
    query.addEventListener('change', follow)
    return () => query.removeEventListener('change', follow)
  }, [query])
  return matches
}
