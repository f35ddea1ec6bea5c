/** The wings of the agent, in the order of their imports. Each text goes to docs/rooms.md. */
export const WINGS = {
  base: 'serves all others, and knows nothing of them',
  rules: 'decides. It is pure: no clock, no I/O, and no import from outside',
  config: 'reads the settings',
  kubernetes: 'knows the cluster',
  gateway: 'talks to APISIX and to the plugin',
  round: 'answers hooks: it gathers, lets the rules decide, and has it carried out',
  upkeep: 'keeps holders right apart from removals',
  report: 'shows what happened, and what it is worth',
  hook: 'listens for hooks and webhooks',
  start: 'wires the parts to a program',
  doctor: 'checks an installation from outside'
} as const

type Wing = keyof typeof WINGS

/** The rooms, in order: a file imports from its own room and from rooms above it. A room is part of a wing, or is a wing itself. */
export const LAW = {
  base: 'clock, log, error codes, small helpers',
  'rules/drain': 'the phases of a drain, its deadline, its answer',
  'rules/plan': 'the changes to holders that the drains ask for',
  'rules/members': 'the nodes that a holder should have, and pods that arrive',
  'rules/proof': 'what the evidence of a drain is worth, and when a gateway may seal an entry',
  'config/schema': 'the form of the configuration: sections, defaults, descriptions',
  config: 'reads and checks the configuration',
  'kubernetes/transport': 'one connection to the API server: credentials, requests, watches',
  'kubernetes/reflect': 'keeps a copy of one kind of object by list and watch',
  'kubernetes/facts': 'pods, EndpointSlices, Services and gateways, as far as the rules need them',
  'kubernetes/lead': 'elects one of several agents',
  'gateway/apisix': 'the clients of Admin API, Control API and the barrier; nodes as APISIX writes them',
  'gateway/inventory': 'the holders that exist, and how APISIX is run',
  'gateway/write': 'takes nodes out of holders and puts them in',
  'gateway/barrier': 'a lane for each gateway: its entries, reports, lists',
  'round/hold': 'the hooks that wait, and the refusals',
  'round/gather': 'gathers the evidence of each drain',
  'round/entries': 'the entries that the gateways should hold, and the pods that take over',
  round: 'decides: one round over all drains at a time',
  upkeep: 'claimed upstreams, expected nodes for the reports, and whom to ask before a removal',
  'report/snapshot': 'the form of the state that the dashboard shows, and its changes',
  'report/metrics': 'the metrics, their labels, and how they are exposed',
  'report/page': 'the server of the dashboard',
  'report/tell': 'reports to the outside: Events and the log',
  'report/behind': 'ghosts, the nodes in which holders and gateways differ from Kubernetes, and since when',
  'report/show': 'fills the snapshot and the gauges after each round',
  hook: 'the HTTP server of hooks, health and metrics',
  'hook/inject': 'the webhook that adds hooks to pods',
  start: 'the command line, and the wiring of all parts',
  'doctor/checks': 'the single checks of `doctor`',
  'doctor/rights': 'the checks of `doctor` on the rights of its account in Kubernetes',
  doctor: 'the commands `doctor`, `status` and `plugin values`'
} satisfies Partial<Record<Wing | `${Wing}/${string}`, string>>

export const ROOMS: readonly string[] = Object.keys(LAW)

/** The wing of a room. */
export const wingOf = (room: string): Wing => room.split('/')[0] as Wing
