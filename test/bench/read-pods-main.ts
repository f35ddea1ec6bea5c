import type { MountedAccount } from '../../sandbox/kubernetes/account.ts'
import { readPods } from './read-pods.ts'

// Runs as a separate process, so that it does not share a core with the stand-in. Its only argument is the account, as JSON.

const account = JSON.parse(process.argv[2] ?? '') as MountedAccount
await readPods(account)
process.send?.(await readPods(account))
process.disconnect?.()
