import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Figures of a checkout, or their budget, by name. */
export type Figures = Readonly<Record<string, number>>

const PARTS = {
  page: 'agent/dashboard/**/*.*',
  plugin: 'plugin-config/**/*.lua',
  sandbox: 'sandbox/**/*.ts',
  'sandbox in Lua': 'sandbox/**/*.lua',
  tests: 'test/**/*.{ts,lua,mjs,c,go}',
  'tests in YAML': 'test/**/*.{yaml,yml}'
}

/** Measures a checkout. Settings and metrics are those of the generated pages, which `npm run docs:check` compares with the code. */
export function figuresOf(root: string, wings: readonly string[]): Figures {
  const read = (file: string) => readFileSync(join(root, file), 'utf8')
  const textsOf = (pattern: string) =>
    globSync(pattern, { cwd: root, exclude: ['**/node_modules', '**/dist'] }).map(read)
  const count = (text: string, what: RegExp) => text.match(what)?.length ?? 0
  const sizeOf = (name: string, ...patterns: readonly string[]): Figures => {
    const texts = patterns.flatMap(textsOf)
    const lines = texts.reduce((sum, text) => sum + count(text, /\n/g), 0)
    return { [`${name}: lines`]: lines, [`${name}: files`]: texts.length }
  }
  const ofWings = wings.map(wing => `agent/${wing}/**/*.ts`)
  const [, words = ''] = /^## Words\n([^]*?)^## /m.exec(read('docs/how-it-works.md')) ?? []
  return Object.assign(
    sizeOf('agent', 'agent/*.ts', ...ofWings),
    ...wings.map(wing => sizeOf(`agent/${wing}`, `agent/${wing}/**/*.ts`)),
    ...Object.entries(PARTS).map(([part, pattern]) => sizeOf(part, pattern)),
    {
      'Markdown: bytes': textsOf('**/*.md').reduce((sum, text) => sum + Buffer.byteLength(text), 0),
      settings: count(read('docs/config.md'), /^\| `/gm),
      metrics: count(read('docs/metrics.md'), /^\| `apisix_drain_/gm),
      'words in the glossary': count(words, /^- \*\*/gm)
    }
  )
}

/** One text for each figure that is above its budget, or has none. */
export const overBudget = (figures: Figures, budget: Figures): readonly string[] =>
  Object.entries(figures).flatMap(([name, now]) => {
    const most = budget[name]
    if (most === undefined) return [`${name}: has no budget in scripts/rooms/budget.ts`]
    if (now <= most) return []
    return [
      `${name}: ${now}, and the budget is ${most} (scripts/rooms/budget.ts): take something away; raise it only with a decision record that says what was taken away for it`
    ]
  })

/** A table of all figures, beside their budget, the goal and the figures of 0.2.0. */
export function figureTable(figures: Figures, columns: Readonly<Record<string, Figures>>): string {
  const row = (name: string, values: readonly (number | string)[]) =>
    [name.padEnd(26), ...values.map(value => String(value).padStart(9))].join(' ')
  return [
    row('', ['now', ...Object.keys(columns)]),
    ...Object.entries(figures).map(([name, now]) =>
      row(name, [now, ...Object.values(columns).map(column => column[name] ?? '-')])
    )
  ].join('\n')
}
