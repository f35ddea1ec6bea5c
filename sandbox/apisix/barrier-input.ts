import { z } from 'zod'
import type { Entry } from './deny-list.ts'
import { canonicalIp } from './ip.ts'
import { parseJson } from './json.ts'

const uid = z.string().min(1).max(128)

const uids = z.array(uid).max(1000)

const ip = z.string().transform((text, context) => {
  const canonical = canonicalIp(text)
  if (canonical !== undefined) return canonical
  context.addIssue({ code: 'custom', message: 'must be an IPv4 or IPv6 address without brackets' })
  return z.NEVER
})

const address = z.string().transform((text, context) => {
  const [, host = '', digits = ''] = /^(.+):(\d{1,5})$/.exec(text) ?? []
  const found = canonicalIp(host.replace(/^\[(.+)\]$/, '$1'))
  const port = Number(digits)
  if (found !== undefined && port >= 1 && port <= 65_535) return { ip: found, port }
  context.addIssue({ code: 'custom', message: 'must be "address:port", IPv6 in brackets' })
  return z.NEVER
})

/** The most addresses for a port, and the most ports of an entry. */
const MOST_SUCCESSORS = 16

const successors = z
  .record(
    z.string().refine(key => /^[1-9]\d{0,4}$/.test(key) && Number(key) <= 65_535, 'is not a port'),
    z.array(address).max(MOST_SUCCESSORS)
  )
  .refine(all => Object.keys(all).length <= MOST_SUCCESSORS, `has more than ${MOST_SUCCESSORS} ports`)

const entry = z
  .object({
    uid,
    ip,
    port: z.int().min(1).max(65535).optional(),
    state: z.enum(['draining', 'sealed']),
    ttl: z.number().min(1).max(3600),
    sealIf: z.string().optional(),
    successors: successors.optional()
  })
  .refine(({ state, sealIf }) => sealIf === undefined || state === 'sealed', {
    message: 'must be the tag of a word, with the state "sealed"',
    path: ['sealIf']
  })

const asOf = z.int().min(1).optional()

const entries = z.object({ entries: z.array(entry).max(1000), asOf })

const removal = z.object({ uids, asOf })

const question = z.object({
  uids,
  wait: z.number().min(0).max(30).default(0),
  until: z.enum(['requests', 'all']).default('all')
})

type Parsed<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly problem: string }

/** Reports all problems of a body at once, each with its path. */
const parserOf =
  <T>(schema: z.ZodType<T>) =>
  (body: string): Parsed<T> => {
    const parsed = parseJson(body)
    if (!parsed.ok) return { ok: false, problem: `the body is not JSON: ${parsed.problem}` }
    const checked = schema.safeParse(parsed.value)
    return checked.success
      ? { ok: true, value: checked.data }
      : { ok: false, problem: z.prettifyError(checked.error) }
  }

const parseRawEntries = parserOf(entries)

/** An entry to put. With `sealIf`, it is sealed only if the workers' word still has this tag. */
export type PutEntry = Entry & { readonly sealIf: string | undefined }

export function parseEntries(body: string): Parsed<PutEntry[]> {
  const parsed = parseRawEntries(body)
  if (!parsed.ok) return parsed
  const { asOf } = parsed.value
  return {
    ok: true,
    value: parsed.value.entries.map(one => ({ ...one, port: one.port, sealIf: one.sealIf, asOf }))
  }
}

export const parseRemoval = parserOf(removal)

export const parseQuestion = parserOf(question)
