import { LAW, WINGS, wingOf } from '../rooms/law.ts'
import { PLUGIN_LAW } from '../rooms/plugin-law.ts'

/** docs/rooms.md: the rooms of the agent and of the plugin, and the laws of their imports. */
export const roomsDoc = (): string => `# The rooms of the agent and the plugin

The folders of \`agent/\`, in the order of their imports. A file imports from its own room and from rooms above it; types count. So each wing
imports only from wings above it. \`npm run lint\` checks that. \`node scripts/rooms.ts --figures\` counts files, arrows and circles.
\`agent/dashboard/\` is a page of its own, for the browser. This page is written by \`npm run docs\` from \`scripts/rooms/law.ts\`.

| wing | room | holds |
| --- | --- | --- |
${Object.entries(WINGS)
  .flatMap(([wing, does]) => [[`**${wing}/**`, '', does], ...roomsOf(wing)])
  .map(cells => `| ${cells.join(' | ')} |`)
  .join('\n')}

## The rooms of the plugin

The files of \`plugin-config/apisix/drain/\` are in one folder, because a gateway mounts them as a ConfigMap. They have rooms all the same, in the order in
which they require each other (\`scripts/rooms/plugin-law.ts\`, checked by \`npm run lint\`).

| room | holds | files |
| --- | --- | --- |
${Object.entries(PLUGIN_LAW)
  .map(([room, { holds, files }]) => `| **${room}** | ${holds} | ${files.replaceAll(' ', ', ')} |`)
  .join('\n')}
`

const roomsOf = (wing: string): readonly string[][] =>
  Object.entries(LAW)
    .filter(([room]) => wingOf(room) === wing)
    .map(([room, holds]) => ['', `\`${room}/\``, holds])
