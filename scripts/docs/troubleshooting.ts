import { readFileSync } from 'node:fs'
import { ERRORS } from '../../agent/base/errors.ts'

const FILE = new URL('../../docs/troubleshooting.md', import.meta.url)
const PART = /(<!-- error codes: generated -->).*(<!-- end -->)/s

/** docs/troubleshooting.md: written by hand except for the table of error codes, which comes from agent/base/errors.ts. */
export function troubleshooting(): string {
  const rows = Object.entries(ERRORS).map(([code, meaning]) => `| \`${code}\` | ${meaning} |`)
  const table = ['| code | what it means, and what to change |', '| --- | --- |', ...rows].join('\n')
  return readFileSync(FILE, 'utf8').replace(PART, `$1\n\n${table}\n\n$2`)
}
