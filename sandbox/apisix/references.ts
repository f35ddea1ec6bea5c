import { asText } from './json.ts'
import { splitUpstreams } from './schema.ts'
import { idOf, type Item, type Store } from './store.ts'

/** Why APISIX refuses to delete an object (without `force=true`), in its words; empty if nothing uses the object. */
export function inUse(store: Store, resource: string, id: string): string {
  // APISIX searches its own memory, which keeps objects in the order of their creation.
  const inOrder = (of: string): Item[] => store.list(of).sort((a, b) => a.createdIndex - b.createdIndex)
  const routes = inOrder('routes')
  const names = (field: string) => (item: Item) => asText(item.value[field]) === id
  const refusal = (kind: string, user: string, item: Item | undefined): string =>
    item ? `can not delete this ${kind}, ${user} [${idOf(item.key)}] is still using it now` : ''
  switch (resource) {
    case 'upstreams':
      return (
        refusal('upstream', 'route', routes.find(names('upstream_id'))) ||
        refusal('upstream', 'service', inOrder('services').find(names('upstream_id'))) ||
        refusal('upstream', 'plugin in route', routes.find(splitsTo(id)))
      )
    case 'services':
      return refusal('service directly', 'route', routes.find(names('service_id')))
    case 'plugin_configs':
      return refusal('plugin config', 'route', routes.find(names('plugin_config_id')))
    default:
      return ''
  }
}

const splitsTo =
  (id: string) =>
  ({ value }: Item): boolean =>
    splitUpstreams(value).some(({ upstream_id: target }) => asText(target) === id)
