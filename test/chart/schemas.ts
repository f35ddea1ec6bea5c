import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { CACHE, CERT_MANAGER, KUBERNETES, moduleFolder, PROMETHEUS_OPERATOR } from './tools.ts'

type Json = { [key: string]: unknown }

/** The CRDs of the custom kinds that the chart uses, by their module. */
const CRDS = [
  [PROMETHEUS_OPERATOR, 'example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml'],
  [PROMETHEUS_OPERATOR, 'example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml'],
  [CERT_MANAGER, 'deploy/crds/cert-manager.io_certificates.yaml']
] as const

/**
 * Returns folders of JSON schemas for kubeconform: one for each Kubernetes version, from the OpenAPI document in its source, and
 * one for custom kinds, from their CRDs. The schemas refuse a field that the API does not have.
 */
export function schemaFolders(): { readonly kubernetes: readonly string[]; readonly custom: string } {
  return {
    kubernetes: KUBERNETES.map(version =>
      made(`kubernetes-${version}`, folder => kubernetes(version, folder))
    ),
    custom: made('custom', custom)
  }
}

function made(name: string, write: (folder: string) => void): string {
  const folder = join(CACHE, 'schemas', name)
  if (existsSync(folder)) return folder
  const writing = `${folder}.${process.pid}`
  mkdirSync(writing, { recursive: true })
  try {
    write(writing)
    renameSync(writing, folder)
  } finally {
    rmSync(writing, { recursive: true, force: true })
  }
  return folder
}

function kubernetes(version: string, folder: string): void {
  const path = join(moduleFolder(`k8s.io/kubernetes@${version}`), 'api/openapi-spec/swagger.json')
  const { definitions } = JSON.parse(readFileSync(path, 'utf8')) as { definitions: Record<string, Json> }
  const strictOnes = Object.entries(definitions).map(([name, schema]) => [
    name,
    name.endsWith('.Quantity') ? { type: ['string', 'number'] } : strict(schema)
  ])
  writeFileSync(
    join(folder, '_definitions.json'),
    JSON.stringify({ definitions: Object.fromEntries(strictOnes) })
  )
  for (const [name, schema] of Object.entries(definitions)) {
    const kinds = (schema['x-kubernetes-group-version-kind'] ?? []) as Json[]
    const [only, another] = kinds
    if (!only || another) continue
    const { group, version: apiVersion, kind } = only as Record<'group' | 'version' | 'kind', string>
    const file = [kind, group.split('.')[0], apiVersion].filter(part => part !== '').join('-')
    const reference = { $ref: `_definitions.json#/definitions/${name}` }
    // Every field is optional in OpenAPI, but objects for kubeconform must have a kind.
    const said = {
      properties: { apiVersion: { type: 'string' }, kind: { const: kind } },
      required: ['apiVersion', 'kind']
    }
    writeFileSync(join(folder, `${file.toLowerCase()}.json`), JSON.stringify({ allOf: [reference, said] }))
  }
}

function custom(folder: string): void {
  for (const [module, path] of CRDS) {
    const { spec } = parse(readFileSync(join(moduleFolder(module), path), 'utf8')) as {
      spec: {
        group: string
        names: { kind: string }
        versions: { name: string; schema: { openAPIV3Schema: Json } }[]
      }
    }
    for (const { name, schema } of spec.versions) {
      const file = `${spec.names.kind}-${spec.group.split('.')[0]}-${name}.json`.toLowerCase()
      writeFileSync(join(folder, file), JSON.stringify(strict(schema.openAPIV3Schema)))
    }
  }
}

/** Converts OpenAPI's dialect to JSON Schema's, and allows only the listed fields. */
function strict(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(strict)
  if (typeof schema !== 'object' || schema === null) return schema
  const node = schema as Json
  if (node['format'] === 'int-or-string' || node['x-kubernetes-int-or-string'] === true) {
    return { type: ['string', 'integer'] }
  }
  const kept = Object.entries(node).flatMap(([key, value]): [string, unknown][] => {
    if (key === 'properties') {
      const inner = Object.entries(value as Json).map(([name, child]) => [name, strict(child)])
      return [[key, Object.fromEntries(inner)]]
    }
    if (key === '$ref') return [[key, `_definitions.json${String(value)}`]]
    return key === 'format' || key === 'description' ? [] : [[key, strict(value)]]
  })
  const open = 'additionalProperties' in node || node['x-kubernetes-preserve-unknown-fields'] === true
  if ('properties' in node && !open) kept.push(['additionalProperties', false])
  return Object.fromEntries(kept)
}
