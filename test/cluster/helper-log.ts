import { readFileSync, writeFileSync, chmodSync } from 'node:fs'
import { join } from 'node:path'
import { APP } from './images/names.ts'
import { MOUNT, type WorkloadOptions } from './objects/workload.ts'
import { stateOf } from './state.ts'

/** The times that one helper logged, in ms. */
export interface HelperTime {
  /** How long the helper waited for the agent. */
  readonly held: number
  /** The time from the helper's start to its end. */
  readonly all: number
}

const LINE = /held for (\S+): .* \((\S+) in all\)$/gm
const PATH = '/said/log'

/** Makes the helper in pods write its output to one file of this machine, because a pod's own log is deleted with it. */
export function helperLog(): {
  readonly options: Partial<WorkloadOptions>
  read(): readonly HelperTime[]
} {
  const file = join(stateOf(Number(process.env['CLUSTER_STATE'])).folder, 'helpers.log')
  writeFileSync(file, '')
  // The helper runs as the app's user, which must be able to write the file.
  chmodSync(file, 0o666)
  const command = [`${MOUNT.mountPath}/apisix-drain-hook`, '--log', PATH]
  return {
    options: {
      volumes: [{ name: 'said', hostPath: { path: file, type: 'File' } }],
      container: {
        image: APP,
        lifecycle: { preStop: { exec: { command } } },
        volumeMounts: [MOUNT, { name: 'said', mountPath: PATH }]
      }
    },
    read: () =>
      [...readFileSync(file, 'utf8').matchAll(LINE)].map(([, held = '', all = '']) => ({
        held: millis(held),
        all: millis(all)
      }))
  }
}

/** Parses Go's form of a duration below a minute: `0s`, `13ms`, `1.2s`. */
const millis = (text: string) => parseFloat(text) * (text.endsWith('ms') ? 1 : 1000)
