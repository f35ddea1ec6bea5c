import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { EVERY_MS, MOST_LINES } from '../../../agent/base/log.ts'
import { BODIES } from '../../../agent/hook/inject/server.ts'
import { hookPolicy, MOST_HOOKS } from '../../../agent/hook/listen.ts'
import { MOST, WITHIN_MS } from '../../../agent/report/page/guard.ts'
import { FOREIGN_HOLD_MS } from '../../../agent/start/assemble.ts'

/** One row for each figure: a sentence made from the code must be in the row of its actor. */
describe('SECURITY.md', () => {
  const text = readFileSync('SECURITY.md', 'utf8')
  const MI = 2 ** 20
  const { maxHooks, maxHooksPerPod } = MOST_HOOKS
  const HOOKS = 'who reaches the hook port'
  const figures: readonly (readonly [actor: string, figure: string])[] = [
    [HOOKS, `${hookPolicy(maxHooks).connections.perAddress} connections from one address`],
    [HOOKS, `Hold ${maxHooksPerPod} hooks in one pod's name, ${maxHooks.toLocaleString('en')} in all`],
    [HOOKS, `${MOST_LINES} lines a minute of refusals`],
    ['who reaches the page port', `${MOST} wrong tokens a minute from one address`],
    ['who reaches the webhook port', `bodies of ${BODIES.each / MI} MiB, ${BODIES.all / MI} MiB at once`],
    ['a tenant with routes in APISIX', `hook for ${FOREIGN_HOLD_MS / 1000} s with an upstream`]
  ]
  for (const [actor, figure] of figures)
    it(`says what the code bounds for ${actor}: ${figure}`, () => {
      const row = text.split('\n').find(line => line.startsWith(`| ${actor} |`))
      expect(row).to.include(figure)
    })

  it('counts in minutes, and has 8 KB at most', () => {
    expect([EVERY_MS, WITHIN_MS]).to.deep.equal([60_000, 60_000])
    expect(Buffer.byteLength(text)).to.be.at.most(8192)
  })
})
