import { crc32 } from 'node:zlib'
import { observable } from '../../agent/gateway/apisix/control-api.ts'
import { holdersOf, namespaceOf } from '../../agent/gateway/apisix/holders.ts'
import { toPodFact } from '../../agent/kubernetes/facts/pod-fact.ts'
import { toServiceFact } from '../../agent/kubernetes/facts/service-store.ts'
import { toEndpointFact } from '../../agent/kubernetes/facts/slice-store.ts'
import type { Resource } from '../../agent/rules/plan/holder.ts'

/** The fields to show; default: all. */
interface Shown {
  readonly show?: readonly string[]
}

const IDENTITY = { uid: 'u', namespace: 'ns', name: 'n' }
/** As YAML can state it: without fields that are `undefined`. */
const shown = (fact: object | undefined, show?: readonly string[]): unknown =>
  fact === undefined
    ? 'none'
    : JSON.parse(
        JSON.stringify(
          show ? Object.fromEntries(Object.entries(fact).filter(([name]) => show.includes(name))) : fact
        )
      )

/** The fact of an object of Kubernetes that has an identity, unless the case takes it away. */
export const podFact = ({ show, ...given }: Shown & { metadata?: object }) =>
  shown(toPodFact({ ...given, metadata: { ...IDENTITY, ...given.metadata } }), show)
export const sliceFact = ({ show, ...given }: Shown & { metadata?: object }) =>
  shown(toEndpointFact({ ...given, metadata: { ...IDENTITY, ...given.metadata } }), show)
export const aService = ({ show, ...given }: Shown & { metadata?: object }) =>
  shown(toServiceFact({ ...given, metadata: { ...IDENTITY, ...given.metadata } }), show)

/** The holders in an object of APISIX. `made`: an ingress controller made its name, of which its id is the hash. */
export function holding(
  given: Shown & { resource: Resource; value: Record<string, unknown>; id?: string; made?: string }
) {
  const { resource, made, id = made ? crc32(made).toString(16) : 'x', value, show } = given
  const object = { resource, id, value: { ...(made && { name: made }), ...value }, revision: 5 }
  return holdersOf(object).map(found => {
    const nodes = found.nodes.map(({ key }) => key)
    const namespace = namespaceOf(object) ?? 'none'
    return shown({ ...found, nodes, objectNamespace: namespace, observable: observable(found) }, show)
  })
}
