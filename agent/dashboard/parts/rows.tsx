import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { count } from '../model/format.ts'

interface RowsProps<T> {
  items: readonly T[]
  label: string
  head: ComponentChildren
  row: (item: T, tabIndex: 0 | -1) => ComponentChildren
  keyOf: (item: T) => string
  /** Whether the row has a button. Arrow keys move between these rows, and one of them is a tab stop. */
  isStop: (item: T) => boolean
  /** The key of the row to scroll to when it changes. */
  reveal?: string | undefined
}

/** How many rows are drawn at first, and how many more with each press of the button below them. */
const MOST = 50
/** How many rows the keys PageUp and PageDown skip. */
const PAGE = 7

/** A table of any length, of which the first rows are drawn. */
export function Rows<T>({ items, label, head, row, keyOf, isStop, reveal }: RowsProps<T>) {
  const box = useRef<HTMLDivElement>(null)
  const [most, setMost] = useState(MOST)
  const [active, setActive] = useState<string>()
  const focused = useRef(false)
  const wanted = reveal === undefined ? -1 : items.findIndex(item => keyOf(item) === reveal)
  const drawn = items.slice(0, Math.max(most, wanted + 1))
  const stop = drawn.find(item => keyOf(item) === active && isStop(item)) ?? drawn.find(isStop)
  useEffect(() => {
    if (wanted !== -1) box.current?.children[wanted]?.scrollIntoView({ block: 'nearest' })
  }, [reveal])
  useEffect(() => {
    // A row that is removed also loses the focus, so `focusout` does not tell.
    const follow = ({ target }: Event) => {
      focused.current = box.current?.contains(target as Node) === true
    }
    const events = ['focusin', 'pointerdown']
    for (const name of events) document.addEventListener(name, follow)
    return () => events.forEach(name => document.removeEventListener(name, follow))
  }, [])
  useLayoutEffect(() => {
    // The browser drops the focus of a row that is removed.
    if (focused.current && document.activeElement === document.body)
      box.current?.querySelector<HTMLElement>('[tabindex="0"]')?.focus({ preventScroll: true })
  })
  const move = (event: KeyboardEvent) => {
    const buttons = [...(box.current?.querySelectorAll('button') ?? [])]
    const from = buttons.findIndex(button => button === document.activeElement)
    const last = buttons.length - 1
    const to = {
      ArrowDown: from + 1,
      ArrowUp: from - 1,
      PageDown: from + PAGE,
      PageUp: from - PAGE,
      Home: 0,
      End: last
    }[event.key]
    if (to === undefined || event.altKey || event.ctrlKey || event.metaKey) return
    event.preventDefault()
    buttons[Math.min(last, Math.max(0, to))]?.focus()
  }
  return (
    <>
      <div class="table" role="table" aria-label={label} aria-rowcount={items.length + 1}>
        <div role="rowgroup" class="table-head">
          {head}
        </div>
        <div role="rowgroup" class="scroll" ref={box} onKeyDown={move}>
          {drawn.map((item, i) => (
            <div key={keyOf(item)} role="row" aria-rowindex={i + 2} onFocusIn={() => setActive(keyOf(item))}>
              {row(item, item === stop ? 0 : -1)}
            </div>
          ))}
        </div>
      </div>
      {drawn.length < items.length && (
        <button type="button" class="ghost-button" onClick={() => setMost(drawn.length + MOST)}>
          Show more: {drawn.length} of {count(items.length, 'row')} are shown
        </button>
      )}
    </>
  )
}
