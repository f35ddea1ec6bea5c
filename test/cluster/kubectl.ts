import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { programPath } from './build.ts'

/** Runs kubectl in the cluster's version. Rejects with kubectl's output if it fails. */
export interface Kubectl {
  (...args: readonly string[]): Promise<string>
  /** `kubectl apply` of these objects. */
  apply(...objects: readonly object[]): Promise<void>
}

export function createKubectl(kubeconfig: string): Kubectl {
  const run = async (args: readonly string[], input: string) => {
    const child = spawn(programPath('kubectl'), [`--kubeconfig=${kubeconfig}`, ...args])
    // A program that reads no input may end before it is written.
    child.stdin.on('error', () => {}).end(input)
    const ended = new Promise<number | null>((resolve, reject) => {
      child.once('error', reject)
      child.once('close', resolve)
    })
    const [code, out, err] = await Promise.all([ended, text(child.stdout), text(child.stderr)])
    if (code !== 0) throw new Error(`kubectl ${args.join(' ')}: ${err}${out}`)
    return out
  }
  const kubectl = (...args: readonly string[]) => run(args, '')
  return Object.assign(kubectl, {
    async apply(...items: readonly object[]) {
      const list = { apiVersion: 'v1', kind: 'List', items }
      await run(['apply', '--server-side', '--force-conflicts', '-f', '-'], JSON.stringify(list))
    }
  })
}
