import type { Snapshot } from '../report/snapshot/snapshot.ts'
import type { Store } from './store.ts'

/** The agent sends a message with every round, at least once a second. After this time without a message, the connection is dead, in ms. */
const SILENCE_MS = 5000
/** The pauses between tries, in ms. The last pause repeats. */
const PAUSES_MS = [200, 500, 1000, 2000]

/** Opens the stream of snapshots, and opens it again whenever it ends. */
export function connect(store: Store): void {
  let tries = 0

  const open = (): void => {
    const url = new URL('api/stream', document.baseURI)
    url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:'
    const socket = new WebSocket(url)
    let silence = setTimeout(() => socket.close(), SILENCE_MS)
    let over = false

    socket.addEventListener('message', ({ data }: MessageEvent<string>) => {
      clearTimeout(silence)
      silence = setTimeout(end, SILENCE_MS)
      tries = 0
      store.take(JSON.parse(data) as Snapshot)
    })
    socket.addEventListener('close', () => end())
    socket.addEventListener('error', () => end())

    function end(): void {
      if (over) return
      over = true
      clearTimeout(silence)
      socket.close()
      store.link('lost')
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
