const WORDS = {
  drain: 'taking one pod out of service, from the first sign of its end until its object is gone',
  holder: 'an object of APISIX that lists nodes: an upstream, a service, a route, or a rule of traffic-split',
  evidence: 'what shows that no gateway uses a pod any more: proved, or only observed',
  'sync lag, out':
    'from the decision of Kubernetes until every gateway had sealed the pod: no new request from then on',
  'sync lag, in': 'from a pod being Ready until every gateway routes to it',
  behind:
    'the age of the oldest change in Kubernetes that the owner has not written, or that a gateway has not applied',
  ack: 'the answer to the preStop hook: the container ends after it',
  ghost: 'a node that is still listed, although its pod is gone',
  successor: 'a pod that takes over the requests while no listed node serves',
  revision: 'how new the configuration is that a worker routes by',
  fallback: 'what a hook does if the agent does not answer, such as a sleep'
}

/** The words of the page. The documentation has more. */
export const Words = () => (
  <details>
    <summary>What the words of this page mean</summary>
    <dl class="words-list">
      {Object.entries(WORDS).map(([word, means]) => (
        <div key={word}>
          <dt>{word}</dt>
          <dd>{means}</dd>
        </div>
      ))}
    </dl>
  </details>
)
