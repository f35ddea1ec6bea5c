import type { ServiceFact } from '../drain/facts.ts'

type Named = Pick<ServiceFact, 'namespace' | 'name'> & Partial<Pick<ServiceFact, 'external'>>

/**
 * The keys of a Service. A domain name means the Service if they have a key in common. Keys make every search linear, although tenants
 * can create thousands of ExternalName Services that point at each other.
 */
export const keysOfService = ({ namespace, name, external = [] }: Named): readonly string[] => [
  `name/${name}`,
  `path/${namespace}/${name}`,
  ...external.map(host => `host/${host.toLowerCase()}`)
]

/** The keys of a domain name: `web`, `web.shop`, `web.shop.svc` and `pod.web.shop.svc`, the last two under any domain. */
export function keysOfName(host: string): readonly string[] {
  const name = host.toLowerCase().replace(/\.$/, '')
  const [first = '', second, third, fourth] = name.split('.', 4)
  const keys = [`host/${name}`]
  if (second === undefined) keys.push(`name/${first}`)
  else if (third === undefined || third === 'svc') keys.push(`path/${second}/${first}`)
  if (fourth === 'svc') keys.push(`path/${third}/${second}`)
  return keys
}
