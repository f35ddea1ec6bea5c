import { TERMS } from '../model/terms.ts'

/** The words of the page, and the pages of the documentation that explain them. */
export function Words() {
  return (
    <section aria-labelledby="words">
      <h2 id="words">Words</h2>
      <details>
        <summary>What the words of this page mean</summary>
        <dl class="words-list">
          {Object.entries(TERMS).map(([term, { means, page }]) => (
            <div key={term}>
              <dt>{term}</dt>
              <dd>
                {means} <span class="quiet">docs/{page}</span>
              </dd>
            </div>
          ))}
        </dl>
      </details>
    </section>
  )
}
