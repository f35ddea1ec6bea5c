import type { Standing } from '../model/lanes.ts'

/** The shape and the word show the state; the colour only helps. */
export type Tone = 'good' | 'busy' | 'bad' | 'plain'

const SHAPES: Record<Tone, string> = {
  good: 'M3.5 8.5 6.500 11.500 12.500 5',
  busy: 'M8 4v4l2.500 2M14 8a6 6 0 1 1-12 0 6 6 0 0 1 12 0',
  bad: 'M8 4.500v4M8 11.200v.3M8 1.500 15 14H1Z',
  plain: 'M4 8h8'
}

export function Mark({ tone, label }: { tone: Tone; label: string }) {
  return (
    <span class={`mark ${tone}`}>
      <svg viewBox="0 0 16 16" aria-hidden="true">
        <path d={SHAPES[tone]} />
      </svg>
      {label}
    </span>
  )
}

export const STANDING: Record<Standing, { readonly tone: Tone; readonly label: string }> = {
  waiting: { tone: 'busy', label: 'waiting' },
  kept: { tone: 'busy', label: 'last endpoint' },
  proved: { tone: 'good', label: 'proved' },
  unproved: { tone: 'bad', label: 'not proved' },
  undone: { tone: 'plain', label: 'undone' }
}
