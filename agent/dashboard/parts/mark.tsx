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
