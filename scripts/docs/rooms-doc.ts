import { LAW } from '../rooms/law.ts'

/** docs/rooms.md: the rooms of the agent and the law of their imports. */
export const roomsDoc = (): string => `# The rooms of the agent

The folders of \`agent/\`, in the order of their imports. A file imports from its own room and from rooms above it; types count.
\`npm run lint\` checks that. \`node scripts/rooms.ts --figures\` counts files, arrows and circles. \`agent/dashboard/\` is a page of its own, for the
browser. This page is written by \`npm run docs\` from \`scripts/rooms/law.ts\`.

| room | holds |
| --- | --- |
${Object.entries(LAW)
  .map(([room, holds]) => `| \`${room}/\` | ${holds} |`)
  .join('\n')}
`
