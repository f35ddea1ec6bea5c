import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { parseDocument, stringify } from 'yaml'
import type { PluginValuesFlags } from '../start/cli.ts'
import { LISTENS } from './plugin-server.ts'
import { mergePluginValues } from './plugin-values.ts'

/** The line that `helm get values` prints before the values, unless `-o yaml` is given. */
const HEADING = /^USER-SUPPLIED VALUES:\r?\n/

/**
 * `apisix-drain plugin values`: prints the values of a release of the official APISIX chart with the plugin merged in.
 *
 * @returns the exit code: 0 if the values are printed; 1 if a part cannot be merged; 2 if a flag or the file of values is wrong
 */
export function pluginValues(version: string, flags: PluginValuesFlags): number {
  const { from, allow, json } = flags
  const problems = allow
    .filter(network => !isNetwork(network))
    .map(network => `--allow: ${network} is no network such as 10.0.0.0/8`)
  const listen = LISTENS.find(one => one === flags.listen)
  if (!listen) problems.push(`--listen: is ${LISTENS.join(', ')}, not "${flags.listen}"`)
  const own = readValues(from, problems)
  if (own === undefined || listen === undefined || problems.length > 0) return complain(problems, json, 2)
  const { values, conflicts } = mergePluginValues(own, { ...flags, listen, version })
  if (conflicts.length > 0) return complain(conflicts, json, 1)
  process.stdout.write(json ? `${JSON.stringify(values)}\n` : stringify(values, { lineWidth: 0 }))
  return 0
}

function readValues(from: string, problems: string[]): Readonly<Record<string, unknown>> | undefined {
  let text: string
  try {
    text = readFileSync(from === '-' ? 0 : from, 'utf8').replace(HEADING, '')
  } catch (err) {
    problems.push(
      `--from: ${from} cannot be read (${(err as NodeJS.ErrnoException).code}); write the output of helm get values <release> -o yaml to it`
    )
    return undefined
  }
  const document = parseDocument(text, { prettyErrors: false })
  const tree: unknown = document.errors.length > 0 ? undefined : document.toJS()
  // A release without values of its own prints `null`.
  if (tree === null) return {}
  if (typeof tree === 'object' && !Array.isArray(tree)) return tree as Readonly<Record<string, unknown>>
  problems.push(
    `--from: ${from === '-' ? 'standard input' : from} is no YAML with values; write the output of helm get values <release> -o yaml to it`
  )
  return undefined
}

function complain(problems: readonly string[], json: boolean, code: number): number {
  if (json) process.stdout.write(`${JSON.stringify({ problems })}\n`)
  else process.stderr.write(`${problems.map(problem => `- ${problem}`).join('\n')}\n`)
  return code
}

function isNetwork(text: string): boolean {
  const [address = '', bits = '', ...more] = text.split('/')
  const family = isIP(address)
  return (
    family !== 0 &&
    more.length === 0 &&
    (bits === '' ? !text.includes('/') : /^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128))
  )
}
