import { registerHooks } from 'node:module'
import { MUTANTS } from './mutant-list.ts'

// Loaded before everything else (`--import`): the modules of the agent are changed while they are loaded.
const AGENT = new URL('../../agent/', import.meta.url).href
const mutant = MUTANTS.find(({ name }) => name === process.env['FAULTS_MUTANT'])
if (!mutant) throw new Error(`no such mutant: ${process.env['FAULTS_MUTANT']}`)

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context)
    const edits = mutant.edits.filter(({ file }) => url === new URL(file, AGENT).href)
    if (edits.length === 0 || loaded.source === undefined || loaded.source === null) return loaded
    const before = typeof loaded.source === 'string' ? loaded.source : new TextDecoder().decode(loaded.source)
    const source = edits.reduce((text, { find, replace }) => text.replace(find, () => replace), before)
    return { ...loaded, source }
  }
})
