import { z } from 'zod'
import { duration } from './fields.ts'

/** The section `ghosts`. */
export const ghosts = z.strictObject({
  action: z
    .enum(['report', 'repair'])
    .default('report')
    .describe(
      'What becomes of a node whose pod is gone: a line in the log, or it is taken out, though never the last one of its holder.'
    ),
  after: duration(
    '10m',
    { min: '1s', max: '168h' },
    'How long nobody must have had an address of `sync.podRanges` before a node there is called a ghost, where nobody saw its pod end.'
  )
})
