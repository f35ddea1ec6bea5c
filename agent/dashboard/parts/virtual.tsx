import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'

interface VirtualProps<T> {
  items: readonly T[]
  /** The height of every row, in px. */
  rowHeight: number
  /** The most rows that are visible at once; with fewer items the table is shorter. */
  rows: number
  label: string
  head: ComponentChildren
  row: (item: T, index: number, tabIndex: 0 | -1) => ComponentChildren
  keyOf: (item: T) => string
  /** Whether the row has a control, which gets the tab index. Arrow keys move between these rows, and one of them is a tab stop. */
  isStop?: (item: T) => boolean
  /** The key of the row to scroll to when it changes. */
  reveal?: string | undefined
}

/** The number of rows drawn above and below the visible rows, so that fast scrolling shows no gap. */
const SPARE = 6

/** A table of any length. Only the visible rows exist in the document. */
export function Virtual<T>(props: VirtualProps<T>) {
  const { items, rowHeight, rows, label, head, row, keyOf, isStop, reveal } = props
  const box = useRef<HTMLDivElement>(null)
  const [top, setTop] = useState(0)
  const height = Math.min(items.length, rows) * rowHeight
  useLayoutEffect(() => {
    // With fewer items than before, the box may be scrolled past the last row.
    const at = box.current?.scrollTop ?? 0
    if (at !== top) setTop(at)
  }, [items.length])
  const first = Math.max(0, Math.floor(top / rowHeight) - SPARE)
  const last = Math.min(items.length, Math.ceil((top + height) / rowHeight) + SPARE)
  const drawn = items.slice(first, last)

  const scrollTo = (index: number) => {
    const at = box.current
    if (!at) return
    if (index * rowHeight < at.scrollTop) at.scrollTop = index * rowHeight
    else if ((index + 1) * rowHeight > at.scrollTop + height) at.scrollTop = (index + 1) * rowHeight - height
    setTop(at.scrollTop)
  }
  useEffect(() => {
    const index = reveal === undefined ? -1 : items.findIndex(item => keyOf(item) === reveal)
    if (index !== -1) scrollTo(index)
  }, [reveal])
  const roving = useRoving(props, drawn, Math.ceil(top / rowHeight) - first, scrollTo, box)

  return (
    <div class="table" role="table" aria-label={label} aria-rowcount={items.length + 1}>
      <div role="rowgroup" class="table-head">
        {head}
      </div>
      <div
        role="rowgroup"
        class="scroll"
        ref={box}
        tabIndex={isStop ? -1 : 0}
        style={{ height: `${height}px` }}
        onScroll={() => setTop(box.current?.scrollTop ?? 0)}
        onKeyDown={roving.onKeyDown}
      >
        <div class="canvas" role="presentation" style={{ height: `${items.length * rowHeight}px` }}>
          {drawn.map((item, i) => (
            <div
              key={keyOf(item)}
              role="row"
              aria-rowindex={first + i + 2}
              class="row"
              style={{ transform: `translateY(${(first + i) * rowHeight}px)`, height: `${rowHeight}px` }}
              onFocusIn={() => roving.onFocus(keyOf(item))}
            >
              {row(item, first + i, item === roving.stop ? 0 : -1)}
            </div>
          ))}
        </div>
      </div>
    </div>
  )
}

/** Selects the row that is the tab stop: the row that had the focus last, else the first visible row. Keys move the tab stop. */
function useRoving<T>(
  { items, keyOf, isStop, rows }: VirtualProps<T>,
  drawn: readonly T[],
  visibleFrom: number,
  scrollTo: (index: number) => void,
  box: { readonly current: HTMLElement | null }
) {
  const [active, setActive] = useState<string>()
  const focused = useRef(false)
  const stops = isStop ? drawn.filter(isStop) : []
  const stop =
    stops.find(item => keyOf(item) === active) ??
    drawn.slice(visibleFrom).find(item => isStop?.(item)) ??
    stops[0]
  useEffect(() => {
    const follow = ({ target }: Event) => {
      focused.current = box.current?.contains(target as Node) === true
    }
    document.addEventListener('focusin', follow)
    document.addEventListener('pointerdown', follow)
    return () => {
      document.removeEventListener('focusin', follow)
      document.removeEventListener('pointerdown', follow)
    }
  }, [])
  /** The row that the last key leads to, until it is drawn: the next key may come before. */
  const wanted = useRef<string | undefined>(undefined)
  useLayoutEffect(() => {
    // The browser drops the focus of a row that is scrolled away or moved.
    const isLost = focused.current && document.activeElement === document.body
    if (wanted.current === undefined && !isLost) return
    wanted.current = undefined
    box.current?.querySelector<HTMLElement>('[tabindex="0"]')?.focus({ preventScroll: true })
  })
  return {
    stop,
    onFocus: (key: string) => isStop && setActive(key),
    onKeyDown: (event: KeyboardEvent) => {
      if (!isStop || stop === undefined || event.altKey || event.ctrlKey || event.metaKey) return
      const from = items.find(item => keyOf(item) === wanted.current) ?? stop
      const to = targetOf(event.key, items, items.indexOf(from), isStop, rows - 1)
      if (to === undefined) return
      event.preventDefault()
      wanted.current = keyOf(items[to] as T)
      setActive(wanted.current)
      scrollTo(to)
    }
  }
}

/** The index to which a key leads: the nearest row with a control in that direction. `undefined` for any other key. */
function targetOf<T>(
  key: string,
  items: readonly T[],
  from: number,
  isStop: (item: T) => boolean,
  page: number
): number | undefined {
  const last = items.length - 1
  const to = {
    ArrowDown: from + 1,
    ArrowUp: from - 1,
    PageDown: Math.min(last, from + page),
    PageUp: Math.max(0, from - page),
    Home: 0,
    End: last
  }[key]
  if (to === undefined) return undefined
  const step = to < from || key === 'End' ? -1 : 1
  const back = key === 'Home' || key === 'End' ? step : -step
  for (const way of [step, back])
    for (let i = to; i >= 0 && i <= last; i += way) {
      const item = items[i]
      if (item !== undefined && isStop(item)) return i
    }
  return from
}
