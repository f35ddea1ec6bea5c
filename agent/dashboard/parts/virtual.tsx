import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'

interface VirtualProps<T> {
  items: readonly T[]
  rowHeight: number
  /** The most rows visible at once; with fewer items the table is lower. */
  rows: number
  label: string
  head: ComponentChildren
  row: (item: T, index: number) => ComponentChildren
  keyOf: (item: T) => string
}

/** Rows drawn above and below the visible ones, so that fast scrolling shows no gap. */
const SPARE = 6

/** A table of any length: only the visible rows exist. Every row has the same height. */
export function Virtual<T>({ items, rowHeight, rows, label, head, row, keyOf }: VirtualProps<T>) {
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
  return (
    <div class="table" role="table" aria-label={label} aria-rowcount={items.length + 1}>
      <div role="rowgroup" class="table-head">
        {head}
      </div>
      <div
        role="rowgroup"
        class="scroll"
        ref={box}
        tabIndex={0}
        style={{ height: `${height}px` }}
        onScroll={() => setTop(box.current?.scrollTop ?? 0)}
      >
        <div class="canvas" role="presentation" style={{ height: `${items.length * rowHeight}px` }}>
          {items.slice(first, last).map((item, i) => (
            <div
              key={keyOf(item)}
              role="row"
              aria-rowindex={first + i + 2}
              class="row"
              style={{ transform: `translateY(${(first + i) * rowHeight}px)`, height: `${rowHeight}px` }}
            >
              {row(item, first + i)}
            </div>
          ))}
        </div>
      </div>
    </div>
  )
}
