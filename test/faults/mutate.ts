import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { replaceInLua } from './lua-edit.ts'
import { MUTANTS } from './mutant-list.ts'
import { parse, replaceByName } from './replace-by-name.ts'

// `--import` loads this module before all others. It changes the agent's modules while Node loads them.
const AGENT = new URL('../../agent/', import.meta.url)
const mutant = MUTANTS.find(({ name }) => name === process.env['FAULTS_MUTANT'])
if (!mutant) throw new Error(`no such mutant: ${process.env['FAULTS_MUTANT']}`)

const edits = Map.groupBy(mutant.edits ?? [], ({ file }) => new URL(file, AGENT).href)
const before = parse(new Map([...edits.keys()].map(url => [url, readFileSync(new URL(url), 'utf8')])))
const sources = new Map(
  [...before].map(([url, parsed]) => [url, replaceByName(parsed, edits.get(url) ?? [])])
)

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context)
    const source = sources.get(url)
    return source === undefined ? loaded : { ...loaded, source }
  }
})

if (mutant.lua) {
  // The gateways of the sandbox read the plugin's files from this folder first (sandbox/apisix/vm/vm.ts).
  const folder = mkdtempSync(join(tmpdir(), 'apisix-drain-mutant-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  process.env['SANDBOX_LUA'] = folder
  for (const edit of mutant.lua) {
    const file = join(folder, 'apisix/drain', edit.file)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, replaceInLua(edit))
  }
}
