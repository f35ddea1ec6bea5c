/** The prefix of every label and annotation of the agent; `facts/` drops all other annotations. */
export const PREFIX = 'apisix-drain.io/'

/** `true`: leave this pod alone. */
export const SKIP = `${PREFIX}skip`
/** Overrides the configured reserve for this pod, a duration such as `5s`. */
export const RESERVE = `${PREFIX}reserve`
/** The longest wait for websockets and streams of this pod, such as `10s`; overrides `drain.longLivedWait`. */
const LONG_LIVED_WAIT = `${PREFIX}long-lived-wait`
/** `true`: all requests to this pod come through APISIX, so no replaced sleep has to cover others. */
const ONLY_APISIX = `${PREFIX}only-apisix`
/** `false`: no other pod takes over from this one in a gateway, and this pod takes over from no other. */
const SUCCESSORS = `${PREFIX}successors`
/** Of a Service: the upstream that lists its endpoints as nodes, as an id, or as `port=id` for each port, separated by commas. */
export const UPSTREAM = `${PREFIX}upstream`

/** The options that a pod sets. A value that cannot be read counts as absent and is reported in `problems`. */
interface PodOptions {
  readonly skip: boolean
  readonly reserveMs: number | undefined
  readonly longLivedMs: number | undefined
  readonly onlyApisix: boolean
  readonly successors: boolean
  readonly problems: readonly string[]
}

type Annotations = Readonly<Record<string, string>>

/** The longest value of an annotation that is read, in characters. A longer one counts as unreadable. */
export const LONGEST_VALUE = 1024
/** How much of a value a message repeats, in characters. */
const SHOWN = 60

/** A tenant's text, quoted for a message; only its beginning if it is long. */
export const quoted = (text: string): string =>
  JSON.stringify(text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text)

/** Reads annotations one by one. Every unreadable value adds a line to `problems`. */
export function annotationReader(annotations: Annotations, remark = '') {
  const problems: string[] = []
  /** @param wanted the form of the value, in words. @returns `undefined` if it is absent or cannot be read */
  const read = <T>(key: string, parse: (text: string) => T | undefined, wanted: string): T | undefined => {
    const text = annotations[key]
    if (text === undefined) return undefined
    const isLong = text.length > LONGEST_VALUE
    const value = isLong ? undefined : parse(text.trim())
    const why = isLong ? `is longer than ${LONGEST_VALUE} characters` : `is not ${wanted}`
    if (value === undefined) problems.push(`${key}: ${quoted(text)} ${why}${remark}`)
    return value
  }
  return { read, problems: problems as readonly string[] }
}

/** Reads a pod's annotations. Never throws: a typo in one manifest must not stop the drains of other pods. */
export function readOptions(annotations: Annotations): PodOptions {
  const { read, problems } = annotationReader(annotations, '; it is ignored')
  return {
    skip: read(SKIP, oneOf({ true: true, false: false }), 'true or false') ?? false,
    reserveMs: read(RESERVE, parseDuration, DURATION_FORM),
    longLivedMs: read(LONG_LIVED_WAIT, parseDuration, DURATION_FORM),
    onlyApisix: read(ONLY_APISIX, oneOf({ true: true, false: false }), 'true or false') ?? false,
    successors: read(SUCCESSORS, oneOf({ true: true, false: false }), 'true or false') ?? true,
    problems
  }
}

/** Parses one of the fixed words. It uses `Object.hasOwn`, because `constructor` must not count as a word. */
const oneOf =
  <T>(words: Readonly<Record<string, T>>) =>
  (text: string): T | undefined =>
    Object.hasOwn(words, text) ? words[text] : undefined

const UNITS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 } as const

/** The form of a duration, for messages. */
export const DURATION_FORM = 'a number and a unit, such as 3s, 250ms or 2m'

/** Converts `3s`, `250ms` or `1.5m` to ms; `undefined` if the text is not a duration. A number needs its unit. */
export function parseDuration(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/.exec(text)
  if (!match?.[1] || !match[2]) return undefined
  const ms = Number(match[1]) * UNITS[match[2] as keyof typeof UNITS]
  return Number.isSafeInteger(Math.round(ms)) ? Math.round(ms) : undefined
}

/** The shortest exact form: 3000 is `3s`, 1500 is `1500ms`, 0 is `0s`. */
export function formatDuration(ms: number): string {
  for (const unit of ['h', 'm', 's'] as const) {
    if (ms % UNITS[unit] === 0 && (ms > 0 || unit === 's')) return `${ms / UNITS[unit]}${unit}`
  }
  return `${ms}ms`
}
