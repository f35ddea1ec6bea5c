import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { CACHE, KUBERNETES, moduleFolder, PROMETHEUS_OPERATOR } from './tools.ts'

type Json = { [key: string]: unknown }

/** The kinds of the Prometheus Operator that the chart uses. */
const CUSTOM_KINDS = ['servicemonitors', 'prometheusrules']

/**
 * Returns folders of JSON schemas for kubeconform: one for each Kubernetes version, from the OpenAPI document in its source, and
 * one for the Prometheus Operator's kinds, from its CRDs. The schemas refuse a field that the API does not have.
 */
export function schemaFolders(): { readonly kubernetes: readonly string[]; readonly custom: string } {
  return {
    kubernetes: KUBERNETES.map(version =>
      made(`kubernetes-${version}`, folder => kubernetes(version, folder))
    ),
    custom: made('prometheus-operator', custom)
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
  const crds = join(moduleFolder(PROMETHEUS_OPERATOR), 'example/prometheus-operator-crd')
  for (const plural of CUSTOM_KINDS) {
    const crd = parse(readFileSync(join(crds, `monitoring.coreos.com_${plural}.yaml`), 'utf8')) as {
      spec: { names: { kind: string }; versions: { name: string; schema: { openAPIV3Schema: Json } }[] }
    }
    for (const { name, schema } of crd.spec.versions) {
      const file = `${crd.spec.names.kind}-monitoring-${name}.json`.toLowerCase()
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
