import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import type { Barrier, EntryOut } from '../barrier.ts'

const PROGRAM = new URL('./pod-process.ts', import.meta.url).pathname
let made = 0

/** Drains one pod, up to the ack. Resolves with the duration in ms. */
export type End = (pod: Pod, barrier: Barrier) => Promise<number>

/** A TCP server in its own process. A test can kill it and start it again at the same address. */
export class Pod {
  readonly host: string
  port = 0
  uid = ''
  #process!: ChildProcess

  private constructor(host: string) {
    this.host = host
  }

  static async start(host: string): Promise<Pod> {
    const pod = new Pod(host)
    await pod.again()
    return pod
  }

  /** Starts the next pod at this address. */
  async again(): Promise<void> {
    made += 1
    this.uid = `uid-tcp-${made}`
    this.#process = fork(PROGRAM, [this.host, String(this.port)], { stdio: 'inherit', execArgv: [] })
    const [{ port }] = (await once(this.#process, 'message')) as [{ port: number }]
    this.port = port
  }

  /** Sends SIGKILL. Resolves when the process is gone. */
  async kill(): Promise<void> {
    const gone = once(this.#process, 'exit')
    if (this.#process.kill('SIGKILL')) await gone
  }
}

const isBusy = (told: EntryOut | undefined): boolean =>
  told === undefined || told.state !== 'sealed' || told.inflight.requests + told.inflight.long > 0

/** Drains a pod as an agent does: puts the entry, seals it once the workers' words allow it, and waits for 0 sessions. */
export const drain: End = async ({ uid, host, port }, barrier) => {
  const began = performance.now()
  const entry = { uid, ip: host, port }
  barrier.words = true
  let [told] = (await barrier.put(entry)).entries
  while (told?.state !== 'sealed') {
    const word = told?.word
    const allows = word && word.l4 !== false && word.tag !== undefined && word.sole.length === 0
    const next = allows ? { ...entry, state: 'sealed' as const, sealIf: word.tag as string } : entry
    ;[told] = (await barrier.put(next)).entries
  }
  while (isBusy(told)) [told] = (await barrier.inflight([uid], 10)).entries
  if ((told?.late ?? 0) > 0) throw new Error('a session was sent to a sealed node')
  return performance.now() - began
}
