import { HOLDER_FILTERS } from './upstreams.ts'

export const SHOWS = ['all', 'live', 'not proved'] as const
export const WAYS = ['out', 'in'] as const
export const RANGES = ['15 min', '1 h', '24 h'] as const

/** The length of each range in ms; every range ends now. */
export const RANGE_MS: Readonly<Record<(typeof RANGES)[number], number>> = {
  '15 min': 900_000,
  '1 h': 3_600_000,
  '24 h': 86_400_000
}

/** The choices of a field, the default first; `undefined`: any text, empty by default. */
const FIELDS = {
  show: SHOWS,
  find: undefined,
  /** The rollout that is open. */
  open: undefined,
  /** The drain whose details are open, as the id of its lane or as a uid. */
  drain: undefined,
  way: WAYS,
  range: ['1 h', '15 min', '24 h'],
  holders: HOLDER_FILTERS,
  seek: undefined
} as const

type Fields = typeof FIELDS

/** The user's choices. They are in the address of the page, so that a link shows the same view. */
export type View = {
  readonly [K in keyof Fields]: Fields[K] extends readonly (infer Choice)[] ? Choice : string
}

/** How a card reads and changes the view. `typed`: each key press is a change, so the change gets no step in the browser's history. */
export interface ViewProps {
  readonly view: View
  readonly onView: (differs: Partial<View>, typed?: 'typed') => void
}

const defaultOf = (name: keyof Fields): string => FIELDS[name]?.[0] ?? ''
const NAMES = Object.keys(FIELDS) as (keyof Fields)[]

/** Reads `location.hash`. A field that is missing or invalid has its default. */
export function viewOf(hash: string): View {
  const given = new URLSearchParams(hash.replace(/^#/, ''))
  return Object.fromEntries(
    NAMES.map(name => {
      const value = given.get(name) ?? ''
      const choices: readonly string[] | undefined = FIELDS[name]
      return [name, choices === undefined || choices.includes(value) ? value : defaultOf(name)]
    })
  ) as View
}

/** The hash of a view, without `#`. It has only the fields that differ from their default, so that most links are short. */
export const hashOf = (view: View): string =>
  new URLSearchParams(
    NAMES.filter(name => view[name] !== defaultOf(name)).map((name): [string, string] => [name, view[name]])
  ).toString()
