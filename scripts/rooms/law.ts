/** The rooms of the agent, in order: a file imports from its own room and from rooms above it. Each text goes to docs/rooms.md. */
export const LAW: Readonly<Record<string, string>> = {
  base: 'no rules: clock, log, error codes, small helpers',
  drain: 'pure: phases of a drain, its deadline, its answer',
  plan: 'pure: the changes to holders that the drains ask for',
  members: 'pure: the nodes that a holder should have, and pods that arrive',
  config: 'reads and checks the configuration',
  transport: 'one connection to the API server: credentials, requests, watches',
  reflect: 'keeps a copy of one kind of object by list and watch',
  facts: 'pods, EndpointSlices, Services and gateways, as far as the rules need them',
  lead: 'elects one of several agents',
  apisix: 'the clients of Admin API, Control API and the barrier; nodes as APISIX writes them',
  inventory: 'the holders that exist, and how APISIX is run',
  write: 'takes nodes out of holders and puts them in',
  barrier: 'keeps the entries in each gateway, and reads its reports',
  hold: 'the hooks that wait, the refusals, and questions to the API server that anybody can cause',
  proof: 'gathers the evidence of a drain, and judges it',
  round: 'decides: one round over all drains at a time',
  upkeep: 'keeps holders right apart from removals: sync, ghosts, restored nodes',
  page: 'the snapshot that the dashboard shows, and its server',
  tell: 'reports to the outside: metrics, Events, conditions, the readiness gate',
  show: 'fills the snapshot and the gauges after each round',
  peers: 'asks the other agents, and joins what all of them know for the dashboard',
  hook: 'the HTTP server of hooks, health and metrics',
  inject: 'the webhook that adds hooks to pods',
  start: 'the command line, and the wiring of all parts',
  checks: 'the single checks of `doctor`',
  doctor: 'the commands `doctor`, `diff`, `status` and `plugin values`'
}

export const ROOMS: readonly string[] = Object.keys(LAW)
