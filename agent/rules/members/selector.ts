/** A label selector, in the form of `kubectl -l`. */
export interface Selector {
  /** The text of the selector, unchanged. */
  readonly text: string
  matches(labels: Readonly<Record<string, string>>): boolean
}

type Labels = Readonly<Record<string, string>>
type Requirement = (labels: Labels) => boolean

const KEY = '[A-Za-z0-9](?:[-A-Za-z0-9_./]*[A-Za-z0-9])?'
const VALUE = '[A-Za-z0-9]?(?:[-A-Za-z0-9_.]*[A-Za-z0-9])?'

const FORMS: readonly [RegExp, (key: string, values: string) => Requirement][] = [
  [new RegExp(`^(${KEY})\\s*!=\\s*(${VALUE})$`), (key, value) => labels => labels[key] !== value],
  [new RegExp(`^(${KEY})\\s*==?\\s*(${VALUE})$`), (key, value) => labels => labels[key] === value],
  [
    new RegExp(`^(${KEY})\\s+in\\s*\\(([^()]+)\\)$`),
    (key, values) => {
      const wanted = list(values)
      return labels => labels[key] !== undefined && wanted.has(labels[key])
    }
  ],
  [
    new RegExp(`^(${KEY})\\s+notin\\s*\\(([^()]+)\\)$`),
    (key, values) => {
      const unwanted = list(values)
      // As in Kubernetes, a pod without the label is selected.
      return labels => labels[key] === undefined || !unwanted.has(labels[key])
    }
  ],
  [new RegExp(`^!\\s*(${KEY})$`), key => labels => labels[key] === undefined],
  [new RegExp(`^(${KEY})$`), key => labels => labels[key] !== undefined]
]

/**
 * Reads a selector; `undefined` if the text is none. Labels match if all requirements hold. The time is linear in the length of the text,
 * because a tenant writes it.
 */
export function parseSelector(text: string): Selector | undefined {
  const requirements = partsOf(text).map(part => requirement(part.trim()))
  if (requirements.some(one => one === undefined)) return undefined
  return { text, matches: labels => requirements.every(one => one?.(labels)) }
}

/** Splits at the commas outside of parentheses, in one pass. */
function partsOf(text: string): string[] {
  const parts: string[] = []
  let from = 0
  let isInside = false
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at]
    if (character === '(') isInside = true
    else if (character === ')') isInside = false
    else if (character === ',' && !isInside) {
      parts.push(text.slice(from, at))
      from = at + 1
    }
  }
  return [...parts, text.slice(from)]
}

function requirement(part: string): Requirement | undefined {
  for (const [form, make] of FORMS) {
    const [, key, values = ''] = form.exec(part) ?? []
    if (key !== undefined) return make(key, values)
  }
  return undefined
}

const list = (values: string): ReadonlySet<string> => new Set(values.split(',').map(value => value.trim()))
