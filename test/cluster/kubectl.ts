import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { programPath } from './build.ts'

const run = promisify(execFile)

/** The kubectl of the cluster's own version. Rejects with what it said, when it fails. */
export const kubectl =
  (kubeconfig: string) =>
  async (...args: readonly string[]): Promise<string> => {
    const { stdout } = await run(programPath('kubectl'), [`--kubeconfig=${kubeconfig}`, ...args], {
      maxBuffer: 2 ** 26
    })
    return stdout
  }

export type Kubectl = ReturnType<typeof kubectl>
