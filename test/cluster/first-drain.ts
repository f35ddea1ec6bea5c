import type { Step } from '../build/getting-started.ts'

/** A command that ran, with its output. */
export interface Ran {
  readonly command: string
  readonly output: string
}

const HEAD = `# The first drain: a log

This is one run of the steps in [README.md](../README.md#getting-started-on-a-cluster), each command with what it printed. Kubernetes,
kubectl and Helm are real, and so are the agent, nginx and the plugin. The Admin API and the chart of APISIX are stand-ins.
The suite makes the images of step 1 from this repository. \`UPDATE=1 npm run test:cluster\` writes this page.
`

/** Returns the text of `docs/first-drain.md`: for each step, a heading and a block with its commands and outputs. */
export function firstDrainPage(steps: readonly Step[], ran: readonly Ran[]): string {
  const parts = steps.map(({ title, commands }) => {
    const lines = commands.flatMap(command => {
      const found = ran.find(one => one.command === command)
      return [`$ ${command}`, ...(found?.output ? [found.output.trimEnd()] : [])]
    })
    return `## ${title}\n\n\`\`\`\n${lines.join('\n')}\n\`\`\`\n`
  })
  return [HEAD, ...parts].join('\n')
}
