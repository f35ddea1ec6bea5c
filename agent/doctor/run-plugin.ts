import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { Document, isScalar, parseDocument, visit, type Tags } from 'yaml'
import type { PluginValuesFlags } from '../start/cli.ts'
import { LISTENS, mergePluginValues } from './plugin-values.ts'

/** Helm reads YAML 1.1, but sexagesimal numbers and dates as text. */
const yaml = (unwanted: RegExp) => ({
  version: '1.1' as const,
  customTags: (tags: Tags) =>
    tags.filter(tag => typeof tag === 'string' || !unwanted.test(JSON.stringify(tag)))
})

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
  process.stdout.write(json ? `${JSON.stringify(values)}\n` : print(values))
  return 0
}

export function readValues(from: string, problems: string[]): Readonly<Record<string, unknown>> | undefined {
  try {
    const text = readFileSync(from === '-' ? 0 : from, 'utf8').replace(HEADING, '')
    const document = parseDocument(text, yaml(/TIME|timestamp|binary/))
    const [error] = document.errors
    if (error) throw error
    const tree: unknown = document.toJS()
    // A release without values of its own prints `null`.
    if (isScalar(document.contents) && document.contents.source === 'null') return {}
    if (typeof tree === 'object' && tree !== null && !Array.isArray(tree))
      return tree as Readonly<Record<string, unknown>>
    throw new Error(text.trim() === '' ? 'it is empty' : 'it is no mapping')
  } catch (err) {
    const [why = ''] = (err as Error).message.split('\n')
    problems.push(
      `--from: ${from === '-' ? 'standard input' : from} is no YAML with values: ${why.replace(/:$/, '')}; write the output of helm get values <release> -o yaml to it`
    )
    return undefined
  }
}

/** The values as YAML that parsers of 1.1 and 1.2 read alike: what begins like a number is quoted. */
export function print(values: unknown): string {
  const document = new Document(values, { ...yaml(/merge/), aliasDuplicateObjects: false })
  visit(document, {
    Scalar(_, node) {
      if (typeof node.value === 'string' && /^[-+.\d<=~]/.test(node.value)) node.type = 'QUOTE_DOUBLE'
    }
  })
  return document.toString({ lineWidth: 0 })
}

function complain(problems: readonly string[], json: boolean, code: number): number {
  if (json) process.stdout.write(`${JSON.stringify({ problems })}\n`)
  else process.stderr.write(`${problems.map(problem => `- ${problem}`).join('\n')}\n`)
  return code
}

const BITS: Readonly<Record<number, number>> = { 4: 32, 6: 128 }

function isNetwork(text: string): boolean {
  const [address = '', bits = '0', ...more] = text.split('/')
  return more.length === 0 && /^\d+$/.test(bits) && Number(bits) <= (BITS[isIP(address)] ?? -1)
}
