import { readFile } from 'node:fs/promises'
import { connect } from 'node:http2'
import { join } from 'node:path'
import type { MountedAccount } from '../../sandbox/kubernetes/account.ts'

const PODS =
  '/api/v1/pods?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan'
const MARK = Buffer.from('initial-events-end')
const WINDOW = 16 * 1024 * 1024

/**
 * Connects and reads every pod as the agent does, but does not parse them. Returns the duration in ms: the agent's first sync
 * cannot be shorter. Call this twice and use the second result: at the first call the stand-in has to make the text of every pod.
 */
export async function readPods({ folder, env }: MountedAccount): Promise<number> {
  const [ca, token] = await Promise.all([
    readFile(join(folder, 'ca.crt')),
    readFile(join(folder, 'token'), 'utf8')
  ])
  const startedAt = performance.now()
  const session = connect(`https://${env['KUBERNETES_SERVICE_HOST']}:${env['KUBERNETES_SERVICE_PORT']}`, {
    ca,
    settings: { enablePush: false, initialWindowSize: WINDOW }
  })
  try {
    await new Promise<void>((resolve, reject) => {
      session.once('error', reject)
      session.once('connect', () => session.setLocalWindowSize(WINDOW))
      const stream = session.request({ ':path': PODS, authorization: `Bearer ${token}` })
      stream.once('error', reject)
      stream.once('end', () => reject(new Error('the pods did not come to their end')))
      stream.on('data', (chunk: Buffer) => {
        if (chunk.includes(MARK)) resolve()
      })
    })
    return performance.now() - startedAt
  } finally {
    session.destroy()
  }
}
