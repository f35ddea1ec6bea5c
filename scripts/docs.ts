import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { format, resolveConfig } from 'prettier'
import { chartSchema } from './docs/chart-schema.ts'
import { configDoc } from './docs/config-doc.ts'
import { configExample } from './docs/config-example.ts'
import { brokenLinks } from './docs/links.ts'
import { metricsDoc, unusedMetrics } from './docs/metrics-doc.ts'
import { roomsDoc } from './docs/rooms-doc.ts'

/**
 * Writes the generated pages, and checks the links of all pages. `--check` writes nothing and shows the stale pages.
 * Exits 1 for a stale page, a dead link, and a metric that nothing raises.
 */
const root = join(import.meta.dirname, '..')
const check = process.argv.includes('--check')
const generated: Record<string, () => string> = {
  'docs/config.md': configDoc,
  'docs/metrics.md': metricsDoc,
  'docs/rooms.md': roomsDoc,
  'config.example.yaml': configExample,
  'charts/apisix-drain/values.schema.json': chartSchema
}

let stale = 0
for (const [name, generate] of Object.entries(generated)) {
  const path = join(root, name)
  const wanted = await format(generate(), { ...(await resolveConfig(path)), filepath: path })
  const found = read(path)
  if (found === wanted) continue
  if (check) {
    stale += 1
    console.log(`${name} is stale; run npm run docs\n${difference(found, wanted)}`)
  } else {
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, wanted)
    console.log(`wrote ${name}`)
  }
}
const wrong = [...brokenLinks(root), ...unusedMetrics(root)]
for (const line of wrong) console.log(line)
process.exitCode = stale + wrong.length > 0 ? 1 : 0

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

/** Returns the lines that only one of the two texts has. They are enough to show the forgotten change. */
function difference(found: string, wanted: string): string {
  const [before, after] = [new Set(found.split('\n')), new Set(wanted.split('\n'))]
  return [
    ...[...before].filter(line => !after.has(line)).map(line => `- ${line}`),
    ...[...after].filter(line => !before.has(line)).map(line => `+ ${line}`)
  ].join('\n')
}
