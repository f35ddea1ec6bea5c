import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { schema } from '../../agent/config/schema/schema.ts'

const FILE = new URL('../../charts/apisix-drain/values.schema.json', import.meta.url)

type Json = { [key: string]: unknown }

/** Settings that the chart sets itself: the paths of mounted secrets, and that the agent runs in a cluster. */
const OF_THE_CHART = new Set(['keyFile', 'tokenFile', 'caFile', 'kubeconfig', 'inject'])

/** values.schema.json of the chart: written by hand except for `properties.config`, which is the agent's own schema. */
export function chartSchema(): string {
  const chart = JSON.parse(readFileSync(FILE, 'utf8')) as Json & { properties: Json }
  chart.properties['config'] = configSchema()
  return JSON.stringify(chart)
}

/** The agent's schema for a chart: settings that the chart sets are optional, and durations have a pattern. */
function configSchema(): Json {
  const config = forChart(z.toJSONSchema(schema, { io: 'input', target: 'draft-7' }))
  delete config['$schema']
  const { apisix } = properties(config)
  const { admin, barrier } = properties(apisix)
  const url = { type: 'string', pattern: '^(https?://[^/?#@]+/?)?$' }
  Object.assign(properties(admin)['url'] as Json, url, { format: undefined })
  Object.assign(admin as Json, { type: ['object', 'null'], required: undefined })
  Object.assign(barrier as Json, { type: ['object', 'null'], required: undefined })
  return { ...config, required: ['apisix'] }
}

const properties = (of: unknown): Json => (of as { properties: Json }).properties

function forChart(node: Json): Json {
  const kept = Object.entries(node).flatMap(([key, value]): [string, unknown][] => {
    if (key === 'format' && String(value).startsWith('duration')) {
      return [
        ['pattern', '^[0-9]+(\\.[0-9]+)?(ms|s|m|h)$'],
        ['$comment', value]
      ]
    }
    if (key === 'example') return [['examples', [value]]]
    if (key === 'properties') {
      const inner = Object.entries(value as Json).filter(([name]) => !OF_THE_CHART.has(name))
      return [[key, Object.fromEntries(inner.map(([name, child]) => [name, forChart(child as Json)]))]]
    }
    return [[key, isObject(value) && key !== 'default' ? forChart(value) : value]]
  })
  return Object.fromEntries(kept)
}

const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
