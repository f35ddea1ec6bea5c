import { fieldsOf, listOf, textOf } from '../base/read.ts'
import type { Config } from '../config/config.ts'
import { gatewayPodReader, staticGateway } from '../kubernetes/facts/gateway-store.ts'
import { podsIn, type Collection } from '../kubernetes/reflect/collection.ts'
import type { Connection } from '../kubernetes/transport/connection.ts'
import type { GatewayFact } from '../rules/drain/facts.ts'

const PAGE = 500
/** Accepts gateways at loopback addresses too (`local`), because operators run the doctor on the machine of a local cluster. */
const readGatewayPod = gatewayPodReader(true)

/** The gateways that the configuration selects. @throws Error if the API server cannot list them */
export async function listGateways(
  { apisix }: Config,
  connection: Pick<Connection, 'request'>,
  signal: AbortSignal
): Promise<GatewayFact[]> {
  const source = apisix.gateways
  if (source.kind === 'static') return source.gateways.map(staticGateway)
  const gateways: GatewayFact[] = []
  for await (const pods of listPages(podsIn(source.namespace).path, connection, signal, source.selector)) {
    for (const pod of pods) {
      const found = readGatewayPod(pod)
      if (found && !found.ended) gateways.push(found.gateway)
    }
  }
  return gateways
}

/** The objects of one kind in these namespaces, page by page. If `namespaces` is empty: in all namespaces. */
export async function* pagesOf(
  namespaces: readonly string[],
  collection: (namespace: string | undefined) => Collection,
  connection: Pick<Connection, 'request'>,
  signal: AbortSignal
): AsyncIterable<readonly unknown[]> {
  const scopes = namespaces.length > 0 ? namespaces : [undefined]
  for (const namespace of scopes) yield* listPages(collection(namespace).path, connection, signal)
}

/** @throws Error on any status but 200 */
async function* listPages(
  path: string,
  connection: Pick<Connection, 'request'>,
  signal: AbortSignal,
  labelSelector?: string
): AsyncIterable<readonly unknown[]> {
  let next: string | undefined
  do {
    const query = new URLSearchParams({
      limit: String(PAGE),
      ...(labelSelector !== undefined && { labelSelector }),
      ...(next !== undefined && { continue: next })
    })
    const { status, json } = await connection.request('GET', `${path}?${query.toString()}`, undefined, signal)
    if (status !== 200) throw new Error(`GET ${path}: status ${status}`)
    yield listOf(fieldsOf(json)['items'])
    next = textOf(fieldsOf(fieldsOf(json)['metadata'])['continue'])
  } while (next !== undefined)
}
