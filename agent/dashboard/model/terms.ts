/** A word that the dashboard uses, its meaning, and the page of the documentation that explains it. */
interface Term {
  readonly means: string
  /** A file in the project's folder `docs`. */
  readonly page: string
}

export const TERMS = {
  drain: {
    means: 'taking one pod out of service, from the first sign of its end until its object is gone',
    page: 'how-it-works.md'
  },
  holder: {
    means:
      'an object of APISIX that lists nodes: an upstream, a service, a route, or a rule of traffic-split',
    page: 'how-it-works.md'
  },
  node: { means: 'one host:port in such an object', page: 'how-it-works.md' },
  gateway: { means: 'one running APISIX instance, with several workers', page: 'how-it-works.md' },
  evidence: {
    means: 'what shows that no gateway uses a pod any more: proved, or only observed',
    page: 'how-it-works.md'
  },
  'sync lag': {
    means:
      'from the decision of Kubernetes until every gateway had sealed the pod: no new request from then on',
    page: 'dashboard.md'
  },
  behind: {
    means:
      'the age of the oldest change in Kubernetes that the owner has not written, or that a gateway has not applied',
    page: 'dashboard.md'
  },
  idle: { means: 'the last request to the pod has ended', page: 'dashboard.md' },
  ack: { means: 'the answer to the preStop hook: the container ends after it', page: 'how-it-works.md' },
  ghost: { means: 'a node that is still listed, although its pod is gone', page: 'troubleshooting.md' },
  successor: {
    means: 'a pod that takes over the requests while no listed node serves',
    page: 'how-it-works.md'
  },
  revision: { means: 'how new the configuration is that a worker routes by', page: 'barrier-api.md' },
  fallback: { means: 'what a hook does if the agent does not answer, such as a sleep', page: 'hooks.md' }
} as const satisfies Readonly<Record<string, Term>>

export type TermName = keyof typeof TERMS
