import { cutName } from '../model/format.ts'

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
