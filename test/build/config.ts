import { loadConfig } from '../../agent/config/load.ts'
import type { Config } from '../../agent/config/config.ts'

/** A valid Config from environment variables alone; a test states only the differences, such as `{ DRAIN_SETTLE: '20s' }`. */
export function config(differs: Readonly<Record<string, string>> = {}): Config {
  const env: Record<string, string> = {
    KEY: 'edd1',
    APISIX_DRAIN_APISIX_ADMIN_URL: 'http://127.0.0.1:9180',
    APISIX_DRAIN_APISIX_ADMIN_KEY_ENV: 'KEY'
  }
  for (const [name, value] of Object.entries(differs)) env[`APISIX_DRAIN_${name}`] = value
  const loaded = loadConfig(undefined, env)
  if (!loaded.ok) throw new Error(loaded.problems.join('\n'))
  return loaded.config
}
