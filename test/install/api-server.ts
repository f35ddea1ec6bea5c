import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { kubeconfigFor } from '../../sandbox/kubernetes/kubeconfig.ts'
import { freePorts } from '../build/free-ports.ts'
import { writeApiServerFiles } from './api-server-files.ts'
import { CURRENT, ETCD, kubernetesPath, type Kubernetes } from './build.ts'

export interface Answer {
  readonly status: number
  readonly json: unknown
}

/** A real kube-apiserver over a real etcd, with no controllers: created objects stay as they were written. */
export interface ApiServer {
  readonly url: string
  /** PEM of the CA that signed its certificate. */
  readonly ca: string
  readonly kubeconfig: string
  call(method: string, path: string, body?: unknown, token?: string): Promise<Answer>
  /** Writes a kubeconfig for this token and returns its path. */
  kubeconfigFor(token: string): string
  stop(): Promise<void>
}

const START_MS = 60_000

/** @throws Error with the end of the API server's log if it is not ready within a minute */
export async function startApiServer(version: Kubernetes = CURRENT): Promise<ApiServer> {
  const folder = mkdtempSync(join(tmpdir(), 'api-server-'))
  const file = (name: string) => join(folder, name)
  const children: ChildProcess[] = []
  const start = (program: string, args: readonly string[]) => {
    const log = openSync(file(`${children.length}.log`), 'w')
    children.push(spawn(program, args, { stdio: ['ignore', log, log], cwd: folder }))
    closeSync(log)
  }
  const { client, peer, port } = await freePorts('client', 'peer', 'port')
  const { token, flags } = writeApiServerFiles(folder)
  const etcd = `http://127.0.0.1:${client}`
  start(ETCD, [
    `--data-dir=${file('etcd')}`,
    `--listen-client-urls=${etcd}`,
    `--advertise-client-urls=${etcd}`,
    `--listen-peer-urls=http://127.0.0.1:${peer}`,
    '--unsafe-no-fsync'
  ])
  start(kubernetesPath('kube-apiserver', version), [
    `--etcd-servers=${etcd}`,
    `--secure-port=${port}`,
    '--bind-address=127.0.0.1',
    ...flags,
    '--service-cluster-ip-range=10.96.0.0/16'
  ])
  const url = `https://127.0.0.1:${port}`

  const stop = async () => {
    for (const child of children.toReversed()) {
      if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) continue
      const ended = once(child, 'exit')
      child.kill('SIGTERM')
      const late = setTimeout(() => child.kill('SIGKILL'), 10_000)
      await ended
      clearTimeout(late)
    }
    rmSync(folder, { recursive: true, force: true })
  }

  try {
    await ready(url, token, () => children.some(({ exitCode }) => exitCode !== null))
  } catch (err) {
    const log = readFileSync(file('1.log'), 'utf8').slice(-2000)
    await stop()
    throw new Error(`kube-apiserver did not become ready:\n${log}`, { cause: err })
  }
  const ca = readFileSync(file('certs/apiserver.crt'), 'utf8')
  let written = 0
  const writeKubeconfigFor = (token: string) => {
    const path = file(`kubeconfig-${written++}`)
    writeFileSync(path, JSON.stringify(kubeconfigFor({ url, ca, token })), { mode: 0o600 })
    return path
  }
  return {
    url,
    ca,
    kubeconfig: writeKubeconfigFor(token),
    kubeconfigFor: writeKubeconfigFor,
    stop,
    call: (method, path, body, as = token) => call(url, method, path, body, as, ca)
  }
}

async function ready(url: string, token: string, dead: () => boolean): Promise<void> {
  const until = Date.now() + START_MS
  for (;;) {
    const answer = await call(url, 'GET', '/readyz', undefined, token).catch(() => undefined)
    if (answer?.status === 200) return
    if (dead() || Date.now() > until)
      throw new Error(dead() ? 'a process ended' : `not within ${START_MS} ms`)
    await sleep(200)
  }
}

/** Makes one call. Without `ca`, it does not verify the certificate, which the API server creates during its start. */
export function call(
  url: string,
  method: string,
  path: string,
  body: unknown,
  token: string,
  ca?: string
): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  const asked = request(
    `${url}${path}`,
    {
      method,
      timeout: 30_000,
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        accept: 'application/json'
      },
      ...(ca === undefined ? { rejectUnauthorized: false } : { ca })
    },
    response => {
      response.setEncoding('utf8')
      let text = ''
      response.on('data', (chunk: string) => (text += chunk))
      response.on('error', reject)
      response.on('end', () => {
        const isJson = response.headers['content-type']?.includes('json')
        resolve({ status: response.statusCode ?? 0, json: isJson ? JSON.parse(text) : text })
      })
    }
  )
  asked.on('timeout', () => asked.destroy(new Error(`${method} ${path}: no answer`)))
  asked.on('error', reject)
  asked.end(body === undefined ? undefined : JSON.stringify(body))
  return promise
}
