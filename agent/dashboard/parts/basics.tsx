import type { ComponentChildren } from 'preact'
import { ago, cutName, exactClock, fullMoment, moment } from '../model/format.ts'
import type { Tone } from '../model/words.ts'

const SHAPES: Record<Tone, string> = {
  good: 'M3.5 8.5 6.500 11.500 12.500 5',
  busy: 'M8 4v4l2.500 2M14 8a6 6 0 1 1-12 0 6 6 0 0 1 12 0',
  bad: 'M8 4.500v4M8 11.200v.3M8 1.500 15 14H1Z',
  plain: 'M4 8h8'
}

/** A state: a shape, a word, and a tooltip that explains it. */
export function Mark({ tone, label, title }: { tone: Tone; label: string; title?: string | undefined }) {
  return (
    <span class={`mark ${tone}`} title={title}>
      <svg viewBox="0 0 16 16" aria-hidden="true">
        <path d={SHAPES[tone]} />
      </svg>
      {label}
    </span>
  )
}

/** A name that is cut in its middle if there is too little space. `before` is its first part, in a quiet colour. */
export function Name({ text, before = '' }: { text: string; before?: string }) {
  const [start, end] = cutName(text)
  return (
    <span class="cut" title={`${before}${text}`}>
      <span class="clip">
        {before && <span class="quiet">{before}</span>}
        {start}
      </span>
      <span class="whole">{end}</span>
    </span>
  )
}

interface TimeProps {
  /** In ms since the epoch, like `now`. */
  at: number
  now: number
  /** `exact`: with ms; `ago`: as an age. */
  as?: 'exact' | 'ago'
}

/** A time in the browser's zone. Its tooltip has the date, the ms and the zone. */
export function Time({ at, now, as }: TimeProps) {
  return (
    <time dateTime={new Date(at).toISOString()} title={fullMoment(at)}>
      {as === 'ago' ? ago(at, now) : as === 'exact' ? exactClock(at) : moment(at, now)}
    </time>
  )
}

interface SectionProps {
  id: string
  title: string
  /** What stands in the line of the title. */
  head?: ComponentChildren
  class?: string
  children: ComponentChildren
}

/** A part of the page with a title. */
export const Section = ({ id, title, head, class: name, children }: SectionProps) => (
  <section aria-labelledby={id} class={name}>
    <div class="section-head">
      <h2 id={id}>{title}</h2>
      {head}
    </div>
    {children}
  </section>
)

interface TableProps {
  label: string
  columns: readonly string[]
  /** The first cell is the row's head. `more`: a line of its own below, for sentences, which would make the columns too narrow. */
  rows: readonly { key: string; cells: readonly ComponentChildren[]; more?: ComponentChildren }[]
}

/** A table whose rows become cards on a narrow page. */
export const Table = ({ label, columns, rows }: TableProps) => (
  <div class="wide" tabIndex={0} role="region" aria-label={label}>
    <table class="plain full cards">
      <thead>
        <tr>
          {columns.map(name => (
            <th key={name} scope="col">
              {name}
            </th>
          ))}
        </tr>
      </thead>
      {rows.map(({ key, cells: [first, ...others], more }) => (
        <tbody key={key}>
          <tr class={more ? 'with-more' : ''}>
            <th scope="row">{first}</th>
            {others.map((cell, i) => (
              <td key={columns[i]} data-label={columns[i + 1]}>
                {cell}
              </td>
            ))}
          </tr>
          {more && (
            <tr>
              <td colSpan={columns.length} class="words">
                {more}
              </td>
            </tr>
          )}
        </tbody>
      ))}
    </table>
  </div>
)

interface SearchProps {
  /** The kind of rows, for the label: `drains`. */
  what: string
  placeholder: string
  value: string
  onSearch: (value: string) => void
}

/** A field that filters the rows of a card. */
export const Search = ({ what, placeholder, value, onSearch }: SearchProps) => (
  <input
    type="search"
    placeholder={placeholder}
    aria-label={`Search ${what}`}
    value={value}
    onInput={event => onSearch(event.currentTarget.value)}
  />
)

interface ChoiceProps<T extends string> {
  label: string
  options: readonly T[]
  value: T
  onChange: (value: T) => void
}

const STEPS: Readonly<Record<string, number>> = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }

/** A choice of a few options, all of them visible. The group is one tab stop; arrow keys move between the options. */
export function Choice<T extends string>({ label, options, value, onChange }: ChoiceProps<T>) {
  const move = (event: KeyboardEvent & { currentTarget: HTMLElement }) => {
    const step = STEPS[event.key]
    if (step === undefined) return
    event.preventDefault()
    const buttons = [...event.currentTarget.querySelectorAll('button')]
    const at = buttons.findIndex(button => button === document.activeElement)
    buttons.at((at + step) % buttons.length)?.focus()
  }
  return (
    <div class="choice" role="toolbar" aria-label={label} onKeyDown={move}>
      <span class="what" aria-hidden="true">
        {label.toLowerCase()}
      </span>
      {options.map(option => (
        <button
          key={option}
          type="button"
          aria-pressed={option === value}
          tabIndex={option === value ? 0 : -1}
          onClick={() => onChange(option)}
        >
          {option}
        </button>
      ))}
    </div>
  )
}
