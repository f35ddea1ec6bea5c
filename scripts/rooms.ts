import { globSync, readFileSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { BEFORE, BUDGET, GOAL } from './rooms/budget.ts'
import { figuresOf, figureTable, overBudget } from './rooms/figures.ts'
import { circles, importsOf } from './rooms/imports.ts'
import { LAW, ROOMS, WINGS, wingOf } from './rooms/law.ts'
import { pluginProblems } from './rooms/plugin-law.ts'

/**
 * Checks the law of imports: a file imports only from its own room and from rooms above it (scripts/rooms/law.ts). Type imports count.
 * Also checks that every file has a room, that no room has more than LARGEST files, and that no two files of the agent have the same name.
 * The plugin has a law of its own, and the whole project a budget (scripts/rooms/budget.ts). Exits 1 if a rule is broken. `--figures` also
 * prints the rooms with their files, the arrows between rooms, and all figures beside their budgets and goals.
 */
const root = join(import.meta.dirname, '../agent')
const LARGEST = 14
/** Outside of the law: the dashboard, which is a page of its own for the browser, and the entry point of the program. */
const OUTSIDE = /^(?:dashboard\/|main\.ts$)/

const files = globSync('**/*.{ts,tsx}', { cwd: root }).toSorted()
const imports = new Map(
  files.map(file => {
    const path = join(root, file)
    return [file, importsOf(path, readFileSync(path, 'utf8')).map(to => relative(root, to))]
  })
)
const roomOf = (file: string): string => dirname(file)
const arrows = new Set<string>()
const wrong: string[] = []

for (const [file, all] of imports) {
  if (!OUTSIDE.test(file) && !ROOMS.includes(roomOf(file)))
    wrong.push(`${file}: not in a room of scripts/rooms/law.ts`)
  for (const to of all) {
    if (OUTSIDE.test(file) || roomOf(to) === roomOf(file)) continue
    arrows.add(`${roomOf(file)} -> ${roomOf(to)}`)
    if (ROOMS.indexOf(roomOf(to)) > ROOMS.indexOf(roomOf(file)))
      wrong.push(`${file} imports ${to}: ${roomOf(file)}/ is above ${roomOf(to)}/ in scripts/rooms/law.ts`)
  }
}
for (const room of ROOMS) {
  const count = files.filter(file => roomOf(file) === room).length
  if (count === 0) wrong.push(`${room}: has no file`)
  if (count > LARGEST) wrong.push(`${room}: ${count} files, at most ${LARGEST}`)
}
const wings = ROOMS.map(wingOf).filter((wing, i, all) => wing !== all[i - 1])
if (wings.join() !== Object.keys(WINGS).join())
  wrong.push('LAW: the rooms of each wing must stand together, in the order of WINGS')
const names = Map.groupBy(files, file => basename(file).replace(/\.tsx?$/, ''))
for (const [name, all] of names)
  if (all.length > 1 && name !== 'main') wrong.push(`${name}: ${all.join(', ')}`)
for (const circle of circles(imports)) wrong.push(`a circle: ${circle.join(', ')}`)

const lua = join(root, '../plugin-config/apisix/drain')
wrong.push(
  ...pluginProblems(
    new Map(
      globSync('*.lua', { cwd: lua }).map(file => [
        basename(file, '.lua'),
        readFileSync(join(lua, file), 'utf8')
      ])
    )
  )
)

const figures = figuresOf(join(root, '..'), Object.keys(WINGS))
wrong.push(...overBudget(figures, BUDGET))

if (process.argv.includes('--figures')) {
  const between = new Set(
    [...arrows]
      .map(arrow => arrow.split(' -> ').map(wingOf))
      .flatMap(([a, b]) => (a === b ? [] : [`${a} ${b}`]))
  )
  for (const [room, holds] of Object.entries(LAW)) {
    const all = files.filter(file => roomOf(file) === room)
    console.log(`${room.padEnd(20)} ${String(all.length).padStart(2)} files  ${holds}`)
  }
  console.log(
    `${wings.length} wings, ${ROOMS.length} rooms, ${arrows.size} arrows (${between.size} between wings), ${circles(imports).length} circles, ${files.length} files\n`
  )
  console.log(figureTable(figures, { budget: BUDGET, goal: GOAL, '0.2.0': BEFORE }))
}
for (const line of wrong) console.error(line)
process.exitCode = wrong.length > 0 ? 1 : 0
