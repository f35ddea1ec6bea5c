import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { parse } from 'yaml'
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
  }
}

const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
const words = (value: unknown): string => list(value).join(',')

/** Returns one line for each right and each opening in the network, so that a diff shows additions. */
function grantsOf(manifests: readonly Manifest[]): string[] {
  return manifests.flatMap(({ kind, metadata: { name }, ...manifest }) => {
    const where = `${kind} ${name}`
    if (kind === 'Role' || kind === 'ClusterRole')
      return (manifest['rules'] as Record<string, unknown>[]).map(
        ({ apiGroups, resources, resourceNames, verbs }) =>
          `${where}: ${words(verbs)} ${words(resources)} (${words(apiGroups)}) ${words(resourceNames)}`.trim()
      )
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
  const recorded = parse(readFileSync(join(import.meta.dirname, 'grants.yaml'), 'utf8')) as Record<
    string,
    string[]
  >

  for (const [title, values] of Object.entries(RENDERINGS))
    it(`are those of grants.yaml, and no wider: ${title}`, () => {
      expect(grantsOf(render(values))).to.deep.equal(recorded[title])
    })

  it('bind to one account, and its tokens are for no other pod', () => {
    for (const values of Object.values(RENDERINGS)) {
      const manifests = render(values)
      const bindings = manifests.filter(({ kind }) => kind.endsWith('RoleBinding'))
      const subjects = new Set(
        bindings.flatMap(({ subjects }) => list(subjects).map(one => JSON.stringify(one)))
      )
      expect([...subjects]).to.deep.equal([
        JSON.stringify({ kind: 'ServiceAccount', name: 'apisix-drain', namespace: 'apisix' })
      ])
      expect(manifests.filter(({ kind }) => kind === 'ServiceAccount')).to.have.length(1)
    }
  })
})
