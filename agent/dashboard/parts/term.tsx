import { TERMS, type TermName } from '../model/terms.ts'

/** A word of the page with its meaning as a tooltip. The card of words at the end has all meanings, for keyboards and screen readers. */
export function Term({ of, children = of }: { of: TermName; children?: string }) {
  return (
    <span class="term" title={`${of}: ${TERMS[of].means}`}>
      {children}
    </span>
  )
}
