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

/** All that the page shows, from a stream that lasts as long as the page. */
export function useAgent(): Shown {
  const [shown, set] = useState<Shown>({ link: 'connecting', snapshot: undefined, receivedAt: 0 })
  useEffect(() => connect(differs => set(before => ({ ...before, ...differs }))), [])
  return shown
}

/** The agent sends a message with every round, at least once a second. After this time without a message, the connection is dead, in ms. */
const SILENCE_MS = 5000
/** The pauses between tries, in ms. The last pause repeats. */
const PAUSES_MS = [200, 500, 1000, 2000]

/** Opens the stream of snapshots, and opens it again whenever it ends. */
function connect(show: (differs: Partial<Shown>) => void): void {
  let tries = 0

  const open = (): void => {
    const url = new URL('api/stream', document.baseURI)
    url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:'
    const socket = new WebSocket(url)
    let over = false
    let silence = setTimeout(end, SILENCE_MS)

    socket.addEventListener('message', ({ data }: MessageEvent<string>) => {
      clearTimeout(silence)
      silence = setTimeout(end, SILENCE_MS)
      tries = 0
      show({ snapshot: JSON.parse(data) as Snapshot, receivedAt: performance.now(), link: 'live' })
    })
    socket.addEventListener('close', end)
    socket.addEventListener('error', end)

    function end(): void {
      if (over) return
      over = true
      clearTimeout(silence)
      socket.close()
      show({ link: 'lost' })
      const pause = PAUSES_MS[Math.min(tries, PAUSES_MS.length - 1)] ?? 0
      tries += 1
      // Many pages lose one agent at the same moment, so they return at different times.
      setTimeout(() => void again(), pause * (0.75 + Math.random() / 2))
    }
  }

  /** A browser does not report why a stream was refused. An expired session gets the login page. */
  const again = async (): Promise<void> => {
    try {
      const { status } = await fetch('./', { method: 'HEAD', cache: 'no-store' })
      if (status === 401) {
        location.reload()
        return
      }
    } catch {
      // The agent does not answer. Opening the stream then fails too, and is retried.
    }
    open()
  }
  open()
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

/** As narrow as a phone, so that a row needs several lines. */
export const PHONE = matchMedia('(max-width: 600px)')
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
