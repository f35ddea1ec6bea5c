import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const FOLDER = join(import.meta.dirname, '../../plugin-config/apisix/drain')

/** Returns the Lua files of the plugin, by name, as a ConfigMap has them. */
export const pluginFiles = (): Readonly<Record<string, string>> =>
  Object.fromEntries(readdirSync(FOLDER).map(name => [name, readFileSync(join(FOLDER, name), 'utf8')]))
