import type { Logger } from 'pino'
import { createListeners, type Clock } from '../../base/clock.ts'
import type { AdminApi, AdminObject } from '../apisix/admin-api.ts'
import { doubled } from '../../rules/drain/times.ts'
import { isDenied, CodedError } from '../../base/errors.ts'
import type { Resource } from '../../rules/plan/holder.ts'
import { isRecord } from '../apisix/nodes.ts'

/** The known mode of this APISIX. */
export interface ModeState {
  /** `undefined`: not detected yet. */
  readonly mode: 'etcd' | 'standalone' | undefined
  /** Why the last detection failed, or empty. */
  readonly problem: string
}

/** Detects the mode and its changes, because another APISIX can be installed behind the same Service. */
export interface ModeWatch {
  current(): ModeState
  /** Called after every change. Returns a function that unsubscribes. */
  onChange(listener: () => void): () => void
  stop(): void
}

interface ModeWatchOptions {
  readonly admin: Pick<AdminApi, 'standalone'>
  readonly clock: Clock
  readonly log: Logger
}

/** The pause between two checks, in ms: until the mode is known (doubled each time), and after that. */
const EVERY_MS = { first: 500, longest: 10_000, known: 30_000 }

const WRITTEN: Readonly<Record<'etcd' | 'standalone', string>> = {
  etcd: 'APISIX keeps its configuration in etcd: holders are written through the Admin API',
  standalone: 'APISIX is in API-driven standalone mode: nothing is ever written'
}

/** Detects the mode of APISIX now, and again after each pause of `EVERY_MS`. */
export function watchMode({ admin, clock, log }: ModeWatchOptions): ModeWatch {
  const listeners = createListeners()
  const ended = new AbortController()
  let state: ModeState = { mode: undefined, problem: '' }
  let tries = 0
  let cancel = () => {}

  const learn = (mode: Mode, why: string): void => {
    if (mode !== 'etcd' && mode !== 'standalone') {
      state = { ...state, problem: why }
      return
    }
    const before = state.mode
    state = { ...state, mode, problem: '' }
    if (mode === before) return
    const facts = { mode, ...(before && { before }) }
    if (before) log.warn(facts, `the mode has changed: ${WRITTEN[mode]}`)
    else log.info(facts, WRITTEN[mode])
    listeners.notify()
  }
  const look = async (): Promise<void> => {
    const { mode, why } = await detectMode(admin, ended.signal)
    if (ended.signal.aborted) return
    learn(mode, why)
    tries += 1
    const pause = state.mode === undefined ? doubled(EVERY_MS, tries - 1) : EVERY_MS.known
    cancel = clock.alarm(clock.now() + pause, () => void look())
  }

  void look()

  return {
    current: () => state,
    onChange: listener => listeners.add(listener),
    stop() {
      ended.abort(new Error('the agent is stopping'))
      cancel()
    }
  }
}

/** The mode of this APISIX, which decides whether the agent may write at all. */
export type Mode = 'etcd' | 'standalone' | 'unreachable' | 'denied'

/** Asks the Admin API for the mode. Never rejects. `why` is empty for `etcd`. */
export async function detectMode(
  admin: Pick<AdminApi, 'standalone'>,
  signal?: AbortSignal
): Promise<{ readonly mode: Mode; readonly why: string }> {
  try {
    return (await admin.standalone(signal)) === undefined
      ? { mode: 'etcd', why: '' }
      : {
          mode: 'standalone',
          why: 'API-driven standalone: every gateway holds its own whole document, so it is never written here'
        }
  } catch (error) {
    return { mode: isDenied(error) ? 'denied' : 'unreachable', why: (error as Error).message }
  }
}

type Lists = Pick<AdminApi, 'list' | 'pageSize'>
type Value = AdminObject['value']

/**
 * The source of the inventory, depending on the mode: the Admin API's collections, or its document. In API-driven standalone mode each
 * gateway has a document of its own. The agent reads the one that the configured Admin API answers with, because it shows the Admin API key
 * to no other address. So what it lists is evidence for one gateway only.
 */
export function createLists(
  admin: Lists & Pick<AdminApi, 'standalone'>,
  mode: { current(): Pick<ModeState, 'mode'> }
): Lists {
  const revisions = new Map<string, { readonly text: string; readonly revision: number }>()
  let shared: ReturnType<AdminApi['standalone']> | undefined
  let last = 0

  /** Collections that are requested at the same moment come from the same document. */
  const document = (signal: AbortSignal | undefined): ReturnType<AdminApi['standalone']> => {
    if (shared) return shared
    shared = admin.standalone(signal)
    queueMicrotask(() => (shared = undefined))
    return shared
  }
  /** Counts the changes of an object, because the documents' own `modifiedIndex` is the owner's clock, and differs between gateways. */
  const revisionOf = (name: string, value: Value): number => {
    const text = JSON.stringify(value)
    const known = revisions.get(name)
    if (known?.text === text) return known.revision
    revisions.set(name, { text, revision: ++last })
    return last
  }
  const toObject = (resource: Resource, value: Value): AdminObject => {
    const id = idOf(value)
    return { resource, id, value, revision: revisionOf(`${resource}/${id}`, value) }
  }
  return {
    get pageSize() {
      // A document comes as a whole, so there is no second page.
      return mode.current().mode === 'standalone' ? Infinity : admin.pageSize
    },
    async list(resource, page, signal) {
      // While the mode is unknown, the Admin API is asked too. If APISIX is standalone, this call fails, and does not return a wrong list.
      if (mode.current().mode !== 'standalone') return admin.list(resource, page, signal)
      const all = await document(signal)
      // Not standalone any more: an empty list would mean that every holder is gone.
      if (!all) throw new CodedError('ADMIN_UNSUPPORTED', 'GET configs')
      const items = all[resource]
      const objects = (Array.isArray(items) ? items : [])
        .filter(isRecord)
        .map(value => toObject(resource, value))
      return { total: objects.length, objects }
    }
  }
}

const idOf = ({ id, username }: Value): string => {
  const given = id ?? username
  return typeof given === 'string' || typeof given === 'number' ? String(given) : ''
}
