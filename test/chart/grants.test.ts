import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { parse, stringify } from 'yaml'
import { render, WEBHOOK, type Manifest, type Values } from './helm.ts'

/** The values that widen rights or network access, by the title in `grants.yaml`. */
const RENDERINGS: Readonly<Record<string, Values>> = {
  'by default': { 'networkPolicy.enabled': true },
  'with every option': {
    'networkPolicy.enabled': true,
    'config.apisix.barrier': {},
    'config.serve.dashboard.enabled': true,
    'config.sync': { allow: ['shop/*'] },
    ...WEBHOOK,
    'tls.barrier.enabled': true
  },
  'in named namespaces': { 'config.kubernetes.namespaces': ['shop', 'billing', 'shop'] },
  'in the namespace of the release': { 'config.kubernetes.namespaces': ['apisix'] },
  'with a Lease elsewhere': { 'config.leader.lease': 'ops/drainers' }
}

const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
const words = (value: unknown): string => list(value).join(',')

/** Returns one line for each right and each opening in the network, so that a diff shows additions. */
function grantsOf(manifests: readonly Manifest[]): string[] {
  return manifests.flatMap(({ kind, metadata: { namespace, name }, ...manifest }) => {
    const where = [kind, namespace, name].filter(Boolean).join(' ')
    if (kind === 'Role' || kind === 'ClusterRole')
      return (manifest['rules'] as Record<string, unknown>[]).map(
        ({ apiGroups, resources, resourceNames, verbs }) =>
          `${where}: ${words(verbs)} ${words(resources)} (${words(apiGroups)}) ${words(resourceNames)}`.trim()
      )
    if (kind.endsWith('RoleBinding')) {
      const { kind: role, name: of } = manifest['roleRef'] as Record<string, string>
      const subjects = manifest['subjects'] as Record<string, string>[]
      const to = subjects.map(one => `${one['kind']} ${one['namespace']}/${one['name']}`)
      return [`${where}: ${role} ${of} to ${to.join()}`]
    }
    if (kind !== 'NetworkPolicy') return []
    const { ingress, egress, policyTypes } = manifest['spec'] as Record<string, unknown>
    const openings = [...list(ingress).map(one => ['from', one]), ...list(egress).map(one => ['to', one])]
    return [
      `${where}: closes ${words(policyTypes)}`,
      ...openings.map(([direction, one]) => `${where}: ${String(direction)} ${JSON.stringify(one)}`)
    ]
  })
}

describe('the rights and the networks of the chart', () => {
  const file = join(import.meta.dirname, 'grants.yaml')
  const rendered = Object.entries(RENDERINGS).map(
    ([title, values]) => [title, grantsOf(render(values))] as const
  )
  if (process.env['UPDATE']) writeFileSync(file, stringify(Object.fromEntries(rendered), { lineWidth: 0 }))
  const recorded = parse(readFileSync(file, 'utf8')) as Record<string, string[]>

  for (const [title, grants] of rendered)
    it(`are those of grants.yaml, and no wider: ${title}`, () =>
      expect(grants).to.deep.equal(recorded[title]))
})
