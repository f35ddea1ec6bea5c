import { spawn } from 'node:child_process'
import { request } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import { now } from '../now.ts'
import type { Hook } from '../kubernetes/objects.ts'
import type { ContainerSpec } from './pod.ts'

/** The result of one run of a preStop hook. Times by `now()`. */
export interface HookRecord {
  readonly container: string
  readonly kind: 'exec' | 'httpGet' | 'sleep'
  readonly startedAt: number
  readonly endedAt: number
  readonly ok: boolean
  /** The exit code of an exec hook; null if a signal ended it. */
  readonly exitCode: number | null | undefined
  /** The end of its output, or the answer's body; for human readers. */
  readonly output: string
}

interface HookContext {
  readonly spec: ContainerSpec
  readonly env: Readonly<Record<string, string>>
  readonly ip: string
  /** Aborted when the container is dead. Its processes die with it, even that of the hook. */
  readonly signal: AbortSignal
}

type Outcome = Pick<HookRecord, 'ok' | 'exitCode' | 'output'>

const OUTPUT_CHARS = 4096
const tail = (text: string) => text.slice(-OUTPUT_CHARS)

/** Runs one preStop hook to its end. Never rejects: a hook that fails is a result. */
export async function runHook(handler: Hook, context: HookContext): Promise<HookRecord> {
  const startedAt = now()
  const kind = handler.exec ? 'exec' : handler.httpGet ? 'httpGet' : 'sleep'
  const outcome = await perform(handler, context).catch((error: unknown): Outcome => ({
    ok: false,
    exitCode: undefined,
    output: tail(String(error))
  }))
  return { container: context.spec.name, kind, startedAt, endedAt: now(), ...outcome }
}

async function perform(handler: Hook, context: HookContext): Promise<Outcome> {
  if (handler.exec) return await exec(handler.exec.command ?? [], context)
  if (handler.httpGet) return await httpGet(handler.httpGet, context)
  await wait((handler.sleep?.seconds ?? 0) * 1000, undefined, { signal: context.signal })
  return { ok: true, exitCode: undefined, output: '' }
}

/** Runs the command without a shell, without `$(VAR)` expansion, and with the container's environment only. */
function exec(command: readonly string[], { env, signal }: HookContext): Promise<Outcome> {
  const [file = '', ...args] = command
  return new Promise((resolve, reject) => {
    // Its own process group, so that the children of a shell end with the shell.
    const child = spawn(file, args, { env, stdio: ['ignore', 'pipe', 'pipe'], detached: true })
    let output = ''
    const keep = (chunk: Buffer) => (output = tail(output + chunk.toString()))
    child.stdout.on('data', keep)
    child.stderr.on('data', keep)
    const kill = () => killGroup(child.pid)
    signal.addEventListener('abort', kill, { once: true })
    if (signal.aborted) kill()
    child.once('error', reject)
    child.once('close', exitCode => {
      signal.removeEventListener('abort', kill)
      resolve({ ok: exitCode === 0, exitCode, output })
    })
  })
}

function killGroup(pid: number | undefined) {
  if (pid === undefined) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // The process group has ended already.
  }
}

/** Calls the hook's URL. As in the kubelet, only a transport error is a failure: a 500 is a success (pkg/kubelet/lifecycle, measured). */
function httpGet(get: NonNullable<Hook['httpGet']>, { spec, ip, signal }: HookContext): Promise<Outcome> {
  const port =
    typeof get.port === 'number' ? get.port : spec.ports?.find(({ name }) => name === get.port)?.containerPort
  return new Promise((resolve, reject) => {
    if (port === undefined) throw new Error(`the container has no port named ${get.port}`)
    const headers = { 'user-agent': 'kube-lifecycle/1.37', connection: 'close' }
    const url = { host: get.host ?? ip, port, path: get.path ?? '/', headers, signal, agent: false }
    const call = request(url, response => {
      response.setEncoding('utf8')
      let output = ''
      response.on('data', (chunk: string) => (output = tail(output + chunk)))
      response.once('error', reject)
      response.once('end', () => resolve({ ok: true, exitCode: undefined, output }))
    })
    call.once('error', reject)
    call.end()
  })
}
