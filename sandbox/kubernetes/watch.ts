import type { Change } from './history.ts'
import { invalid, tooOld } from './errors.ts'
import { parseVersion, reach } from './list.ts'
import type { KubeObject } from './objects.ts'
import { apiVersionOf, infoOf, type ResourceName } from './resources.ts'
import { matcher, type Match } from './selectors.ts'
import type { Store } from './store.ts'
import type { Target } from './target.ts'

interface WatchRequest {
  readonly resource: ResourceName
  readonly match: Match
  /** The start of the watch: first all present objects (`current`), or after a version. */
  readonly from:
    | { readonly kind: 'current'; readonly endMarker: boolean }
    | { readonly kind: 'after'; readonly version: number }
  readonly bookmarks: boolean
  readonly timeoutMs: number
}

/** The receiver of the events. `send` takes one line; `end` closes the stream cleanly. */
export interface Sink {
  send(line: string): void
  /** Resolves in a later turn, once most of the data has been sent or the client has stopped reading. */
  sent(): Promise<void>
  end(): void
}

const HALF_HOUR = 1_800_000
/** Initial events that are sent in one turn. */
const AT_ONCE = 500

/** Reads the query of a watch. Throws 400 and 422; waits for a version that the store has not reached (504). */
export async function parseWatch(
  store: Store,
  target: Target,
  query: URLSearchParams,
  options: { readonly old: boolean; readonly waitMs: number }
): Promise<WatchRequest> {
  const version = parseVersion(query.get('resourceVersion'))
  const sendInitialEvents = options.old ? null : query.get('sendInitialEvents')
  const versionMatch = query.get('resourceVersionMatch')
  const bookmarks = query.get('allowWatchBookmarks') === 'true' || query.get('allowWatchBookmarks') === '1'
  const { kind } = infoOf(target.resource)
  if (versionMatch !== null && sendInitialEvents === null)
    throw invalid(
      `${kind}.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided`
    )
  if (sendInitialEvents !== null && versionMatch !== 'NotOlderThan')
    throw invalid(
      `${kind}.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan`
    )
  const initial = sendInitialEvents === 'true' || sendInitialEvents === '1'
  if (initial) await reach(store, version ?? 0, options.waitMs)
  const timeout = Number(query.get('timeoutSeconds') ?? 0)
  return {
    resource: target.resource,
    match: matcher(target.resource, {
      namespace: target.namespace,
      labels: query.get('labelSelector') ?? '',
      fields: target.name ? `metadata.name=${target.name}` : (query.get('fieldSelector') ?? '')
    }),
    from:
      initial || (sendInitialEvents === null && !version)
        ? { kind: 'current', endMarker: initial && bookmarks }
        : { kind: 'after', version: version ?? store.version() },
    bookmarks,
    timeoutMs: timeout > 0 ? timeout * 1000 : HALF_HOUR * (1 + Math.random())
  }
}

/** The event of a change for a watcher with a selector: entry is ADDED, exit is DELETED with the last state that matched. */
function seenBy(
  match: Match,
  { type, object, previous, version }: Change
): { type: Change['type']; object: KubeObject } | undefined {
  const before = previous !== undefined && match(previous)
  const now = type !== 'DELETED' && match(object)
  if (now) return { type: before ? 'MODIFIED' : 'ADDED', object }
  if (!before) return undefined
  return {
    type: 'DELETED',
    object:
      type === 'DELETED'
        ? object
        : { ...previous, metadata: { ...previous.metadata, resourceVersion: `${version}` } }
  }
}

/** One JSON text per stored version, however many watchers get it. */
const texts = new WeakMap<KubeObject, string>()
function text(object: KubeObject): string {
  const known = texts.get(object)
  if (known !== undefined) return known
  const fresh = JSON.stringify(object)
  texts.set(object, fresh)
  return fresh
}

const line = (type: string, body: string): string => `{"type":"${type}","object":${body}}\n`

/** Sends all events of the watch until it times out. Returns the function that stops it earlier. */
export function runWatch(
  store: Store,
  request: WatchRequest,
  sink: Sink,
  bookmarkEveryMs: number
): { stop(): void } {
  const { resource, match, from } = request
  const info = infoOf(resource)
  const bookmark = (version = store.version(), annotations?: Record<string, string>) => {
    const metadata = {
      resourceVersion: `${version}`,
      creationTimestamp: null,
      ...(annotations ? { annotations } : {})
    }
    const bookmarked = { kind: info.kind, apiVersion: apiVersionOf(info), metadata }
    sink.send(line('BOOKMARK', JSON.stringify(bookmarked)))
  }

  let stop = () => {}
  let stopped = false
  /** Sends the initial events in portions. Other work gets a turn in between, so that even half a gigabyte does not delay pings. */
  const sendAll = async (objects: readonly KubeObject[], version: number) => {
    for (const [i, object] of objects.entries()) {
      if (i > 0 && i % AT_ONCE === 0) await sink.sent()
      if (stopped) return
      sink.send(line('ADDED', text(object)))
    }
    if (from.kind === 'current' && from.endMarker) bookmark(version, { 'k8s.io/initial-events-end': 'true' })
    stop = follow(version)
  }
  const follow = (start: number): (() => void) => {
    const missed = store.history.since(start)
    if (missed === undefined) {
      sink.send(line('ERROR', JSON.stringify(tooOld(start, store.history.floor()).toStatus())))
      sink.end()
      return () => {}
    }
    const deliver = (change: Change) => {
      // A watch from a future version stays silent until the store reaches that version, as in Kubernetes.
      if (change.resource !== resource || change.version <= start) return
      const event = seenBy(match, change)
      if (event) sink.send(line(event.type, text(event.object)))
    }
    for (const change of missed) deliver(change)
    const unsubscribe = store.onAnyChange(deliver)
    const isBehind = () => store.version() >= start

    const ticker = request.bookmarks
      ? setInterval(() => {
          if (isBehind()) bookmark()
        }, bookmarkEveryMs)
      : undefined
    const unfollow = () => {
      unsubscribe()
      clearInterval(ticker)
      clearTimeout(timer)
      clearTimeout(lastWord)
    }
    const timer = setTimeout(() => {
      unfollow()
      sink.end()
    }, request.timeoutMs)
    // A last bookmark 2 s before the deadline, so that the next watch starts at a recent version.
    const lastWord =
      request.bookmarks && request.timeoutMs > 2000
        ? setTimeout(() => {
            if (isBehind()) bookmark()
          }, request.timeoutMs - 2000)
        : undefined
    return unfollow
  }

  if (from.kind === 'after') stop = follow(from.version)
  else void sendAll(store.snapshot(resource).filter(match), store.version())
  return {
    stop() {
      stopped = true
      stop()
    }
  }
}
