import type { Mistake } from './mistake.ts'
import { faultsOf, type Printed } from './play.ts'

/** A mistake, and the output of two versions of the program. */
export interface Compared {
  readonly mistake: Mistake
  readonly before: Printed
  readonly now: Printed
}

const LINES = 5
const WIDTH = 220

const HEAD = `# Mistakes, and what the operator reads

Each mistake was made with the real commands against stand-ins, with two versions: before the messages were reworked, and now. Findings of
\`doctor\` that are \`ok\` are left out, long lines end with …, and so do outputs of more than ${LINES} lines. A message counts as clear if it names the setting
and the change, with the right exit code. [CONTRIBUTING.md](../CONTRIBUTING.md) names the command that writes this page. The suite \`feature\` plays
every mistake, and fails if a message is not clear.
`

/** Returns the text of `docs/mistakes.md`: a table of all mistakes, and then both outputs for each mistake. */
export function mistakesPage(compared: readonly Compared[]): string {
  const isClear = (printed: Printed, mistake: Mistake) => faultsOf(mistake, printed).length === 0
  const yes = (clear: boolean) => (clear ? 'clear' : '**not clear**')
  const count = (of: (one: Compared) => Printed) =>
    `${compared.filter(one => isClear(of(one), one.mistake)).length} of ${compared.length}`
  const rows = compared.map(
    ({ mistake, before, now }) =>
      `| ${mistake.title} | ${yes(isClear(before, mistake))} | ${yes(isClear(now, mistake))} |`
  )
  const table = [
    '| mistake | before | now |',
    '| --- | --- | --- |',
    ...rows,
    `| **clear** | **${count(one => one.before)}** | **${count(one => one.now)}** |`
  ]
  const sections = compared.map(({ mistake: { title, args }, before, now }) =>
    [
      `## ${title}`,
      '```',
      `$ apisix-drain ${args.join(' ')}`.trimEnd(),
      `# before: exit code ${before.code}`,
      ...shown(before.text),
      `# now: exit code ${now.code}`,
      ...shown(now.text),
      '```'
    ].join('\n')
  )
  return `${[HEAD, table.join('\n'), ...sections].join('\n\n')}\n`
}

/** Returns the lines that an operator looks for. Ports and folders of a run are replaced by fixed values. */
function shown(text: string): readonly string[] {
  const lines = text
    .replaceAll(/127\.0\.\d+\.\d+:\d+/g, '127.0.0.1:1234')
    .replaceAll(/\/tmp\/apisix-drain-mistake-\w+/g, '/tmp/x')
    .trimEnd()
    .split('\n')
    .filter(line => line.trim() !== '' && !/^ok\s/.test(line))
  const cut = lines.slice(0, LINES).map(line => (line.length > WIDTH ? `${line.slice(0, WIDTH)}…` : line))
  return lines.length > LINES ? [...cut, '…'] : cut
}
