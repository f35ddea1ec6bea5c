import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { anchorsOf, brokenLinks, linksOf } from '../../../scripts/docs/links.ts'

describe('links of the pages', () => {
  it('are found in prose, not in code, and only those of the project', () => {
    const page =
      'a [x](a.md), ![y](b.png "t") `[no](c.md)` [z](https://e.org)\n```md\n[no](d.md)\n```\n[w](#here)\n'
    expect(linksOf(page)).eql(['a.md', 'b.png', '#here'])
  })

  it('have anchors as GitHub makes them', () => {
    const page =
      '# The `why`: a *word*\n## 503 `no-answer`\n### Two\n### Two\n```sh\n# no heading\n```\n## [A](b.md) link\n'
    expect([...anchorsOf(page)]).eql(['the-why-a-word', '503-no-answer', 'two', 'two-1', 'a-link'])
  })

  it('are reported if they lead nowhere', () => {
    const root = mkdtempSync(join(tmpdir(), 'apisix-drain-links-'))
    try {
      mkdirSync(join(root, 'docs'))
      writeFileSync(
        join(root, 'docs/a.md'),
        '# Here\n[1](#here) [2](#there) [3](../b.md#top) [4](c.md) [5](../../x)\n'
      )
      writeFileSync(join(root, 'b.md'), '# Bottom\n[6](docs/a.md#here) [7](docs)\n')
      expect(brokenLinks(root)).eql([
        'docs/a.md: #there: docs/a.md has no heading #there',
        'docs/a.md: ../b.md#top: b.md has no heading #top',
        'docs/a.md: c.md: there is no such file',
        'docs/a.md: ../../x: leads out of the project'
      ])
    } finally {
      rmSync(root, { recursive: true })
    }
  })
})
