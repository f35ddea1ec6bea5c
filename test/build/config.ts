import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse, stringify } from 'yaml'
import { loadConfig } from '../../agent/config/load.ts'
import { configRows } from '../../agent/config/problems.ts'
import { secretFromFile, type Config, type Secret } from '../../agent/config/config.ts'

/** Settings in one level: `APISIX_ADMIN_URL` is `apisix.admin.url`. `APISIX_ADMIN_KEY` is the content of `apisix.admin.keyFile`. Without both, the section is left out. */
export type Settings = Readonly<Record<string, string | undefined>>

const folder = mkdtempSync(join(tmpdir(), 'apisix-drain-config-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
let files = 0

/** A file with this text, until the process ends. */
export function fileOf(text: string): string {
  const path = join(folder, String((files += 1)))
  writeFileSync(path, text)
  return path
}

export const secretOf = (text: string): Secret => secretFromFile(fileOf(text))

const upper = (path: readonly string[]) =>
  path.map(name => name.replaceAll(/[A-Z]/g, '_$&').toUpperCase()).join('_')
const rows = new Map(configRows.filter(row => !row.section).map(row => [upper(row.path), row]))

/** A file of configuration with these settings. */
export function configFile(settings: Settings): string {
  const tree: Record<string, unknown> = {}
  const all: Settings = { APISIX_ADMIN_KEY: 'edd1', ...settings }
  const left = (all['APISIX_ADMIN_URL'] ?? all['APISIX_ADMIN_KEY']) === undefined ? 'APISIX_ADMIN_' : '-'
  for (const [name, value] of Object.entries(all)) {
    if (value === undefined || name.startsWith(left)) continue
    const isSecret = /_(KEY|TOKEN)$/.test(name)
    const row = rows.get(isSecret ? `${name}_FILE` : name)
    if (!row) throw new Error(`there is no setting ${name}`)
    let at = tree
    for (const part of row.path.slice(0, -1)) at = (at[part] ??= {}) as typeof tree
    const read = (): unknown =>
      row.type === 'list' && !value.startsWith('[') ? value.split(',') : parse(value)
    at[row.path.at(-1) ?? ''] = isSecret ? fileOf(value) : row.type === 'string' ? value : read()
  }
  return fileOf(stringify(tree))
}

/** A valid Config; a test states only the differences, such as `{ DRAIN_SETTLE: '20s' }`. */
export function config(differs: Settings = {}): Config {
  const loaded = loadConfig(configFile({ APISIX_ADMIN_URL: 'http://127.0.0.1:9180', ...differs }))
  if (!loaded.ok) throw new Error(loaded.problems.join('\n'))
  return loaded.config
}
