import { expect } from 'chai'
import { readFile } from 'node:fs/promises'
import { MUTANTS } from '../../faults/mutant-list.ts'

describe('mutants', () => {
  it('change what is there, exactly once each', async () => {
    const stale: string[] = []
    for (const { name, edits } of MUTANTS)
      for (const { file, find } of edits) {
        const source = await readFile(new URL(`../../../agent/${file}`, import.meta.url), 'utf8')
        if (source.split(find).length !== 2) stale.push(`${name}: agent/${file}: ${find}`)
      }
    expect(stale).to.deep.equal([])
  })
})
