import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join, normalize, relative } from 'node:path'

/** Top-level folders with third-party pages or build output. */
const NOT_OURS = new Set(['node_modules', 'dist', 'coverage'])

/** Returns one line for each broken link in a Markdown page (`[text](target)`). Links to other sites are not checked. */
export function brokenLinks(root: string): string[] {
  const pages = globSync('**/*.md', { cwd: root, exclude: path => NOT_OURS.has(path) }).toSorted()
  const texts = new Map(pages.map(page => [page, readFileSync(join(root, page), 'utf8')]))
  return pages.flatMap(page =>
    linksOf(texts.get(page) ?? '').flatMap(link => {
      const problem = problemOf(root, page, link, texts)
      return problem === undefined ? [] : [`${page}: ${link}: ${problem}`]
    })
  )
}

/** Returns the targets of a page's links, without links to other sites. Text in code is not a link. */
function linksOf(markdown: string): string[] {
  const prose = withoutCode(markdown).replaceAll(/`[^`\n]*`/g, '')
  return [...prose.matchAll(/\]\(([^)\s]+)[^)]*\)/g)]
    .map(([, target = '']) => target)
    .filter(target => !/^[a-z]+:/.test(target))
}

/** The anchors of a page's headings, as GitHub makes them: lower case, no punctuation, dashes for spaces, repeats numbered. */
export function anchorsOf(markdown: string): Set<string> {
  const seen = new Map<string, number>()
  const anchors = [...withoutCode(markdown).matchAll(/^#{1,6} +(.+?) *$/gm)].map(([, title = '']) => {
    const text = title.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase()
    const slug = text.replaceAll(/[^\p{L}\p{N}\p{M}\s_-]/gu, '').replaceAll(/\s/g, '-')
    const before = seen.get(slug) ?? 0
    seen.set(slug, before + 1)
    return before === 0 ? slug : `${slug}-${before}`
  })
  return new Set(anchors)
}

const withoutCode = (markdown: string) => markdown.replaceAll(/^( *)(```+)[^\n]*\n[\s\S]*?^\1\2 *$/gm, '')

function problemOf(
  root: string,
  page: string,
  link: string,
  texts: ReadonlyMap<string, string>
): string | undefined {
  const [path = '', anchor] = link.split('#', 2)
  const target = path === '' ? page : normalize(join(dirname(page), decodeURIComponent(path)))
  if (relative('.', target).startsWith('..')) return 'leads out of the project'
  if (!existsSync(join(root, target))) return 'there is no such file'
  if (anchor === undefined || anchor === '') return undefined
  const text = texts.get(target)
  if (text === undefined || anchorsOf(text).has(anchor)) return undefined
  return `${target} has no heading #${anchor}`
}
