/** A label selector, as `kubectl -l` takes it. */
export interface Selector {
  /** As it was written. */
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
    (key, values) => labels => labels[key] !== undefined && list(values).includes(labels[key])
  ],
  [
    // Without the label the pod is selected, as in Kubernetes.
    new RegExp(`^(${KEY})\\s+notin\\s*\\(([^()]+)\\)$`),
    (key, values) => labels => labels[key] === undefined || !list(values).includes(labels[key])
  ],
  [new RegExp(`^!\\s*(${KEY})$`), key => labels => labels[key] === undefined],
  [new RegExp(`^(${KEY})$`), key => labels => labels[key] !== undefined]
]

/** `undefined` if the text is no selector. All of its requirements must hold. */
export function parseSelector(text: string): Selector | undefined {
  const parts = text.split(/,(?![^(]*\))/).map(part => part.trim())
  const requirements = parts.map(requirement)
  if (requirements.some(one => one === undefined)) return undefined
  return { text, matches: labels => requirements.every(one => one?.(labels)) }
}

function requirement(part: string): Requirement | undefined {
  for (const [form, make] of FORMS) {
    const [, key, values = ''] = form.exec(part) ?? []
    if (key !== undefined) return make(key, values)
  }
  return undefined
}

const list = (values: string): string[] => values.split(',').map(value => value.trim())
