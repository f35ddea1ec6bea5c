import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { AxeResults } from 'axe-core'
import type { Page } from 'playwright-core'

const SOURCE = readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8')
const LEVELS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']

/** Returns the violations of WCAG 2.2 level A or AA, each with its elements: `color-contrast: .quiet, …`. */
export async function violations(page: Page): Promise<string[]> {
  // `evaluate` uses the debugger: the page's own policy allows no other script.
  await page.evaluate(SOURCE)
  const run = `axe.run(document, { runOnly: { type: 'tag', values: ${JSON.stringify(LEVELS)} } })`
  const { violations } = await page.evaluate<AxeResults>(run)
  return violations.map(
    ({ id, nodes }) =>
      `${id}: ${nodes.map(({ target, failureSummary }) => `${target.join(' ')} (${failureSummary})`).join(', ')}`
  )
}
