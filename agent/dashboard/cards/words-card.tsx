import { TERMS } from '../model/terms.ts'

/** The words of the page, and the pages of the documentation that explain them: as links if `serve.dashboard.docsUrl` is set. */
export function Words({ docsUrl }: { docsUrl: string | null }) {
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
                {means} <Place docsUrl={docsUrl} page={page} />
              </dd>
            </div>
          ))}
        </dl>
      </details>
    </section>
  )
}

function Place({ docsUrl, page }: { docsUrl: string | null; page: string }) {
  if (docsUrl === null) return <span class="quiet">docs/{page}</span>
  return (
    <a href={`${docsUrl}/${page}`} target="_blank" rel="noreferrer">
      docs/{page}
    </a>
  )
}
