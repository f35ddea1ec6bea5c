import { expect } from 'chai'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '../../..')
const PAGES = [
  'README.md',
  'docs/*.md',
  'charts/apisix-drain/templates/*.{txt,tpl,yaml}',
  'test/kind/*.yaml',
  'sandbox/arms.ts'
]

/** Commands that call the agent, one line each. */
const calls = globSync(PAGES, { cwd: ROOT }).flatMap(page =>
  readFileSync(join(ROOT, page), 'utf8')
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')
    .filter(line => line.includes('curl -') && line.includes('/v1/prestop'))
    .map(line => ({ page, line: line.trim() }))
)

describe('the hooks in the documentation', () => {
  it('are found', () => {
    const pages = new Set(calls.map(({ page }) => page))
    expect([...pages]).to.include.members(['README.md', 'test/kind/web-drain.yaml'])
    expect(pages).to.include('charts/apisix-drain/templates/NOTES.txt')
  })

  for (const { page, line } of calls) {
    it(`${page}: names its pod, or shows its token, and uses no proxy: ${line.slice(0, 60)}`, () => {
      expect(line).to.match(/--noproxy "\*"/)
      expect(line).to.match(
        /[?]namespace=\$POD_NAMESPACE&pod=\$POD_NAME(?:&container=\w+)?(?:&sleep=5s)?"|curl -K - /
      )
    })
  }
})
