import type { InjectSettings } from '../../../agent/hook/inject/settings.ts'

const annotations = {
  'apisix-drain.io/reserve': '5s',
  'apisix-drain.io/upstream': 'http=web,grpc=g',
  other: 'x'
}
const labels = { app: 'web', 'pod-template-hash': '5d7f', 'kubernetes.io/service-name': 'web' }
const ownerReferences = [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web-5d7f', controller: true }]
const metadata = {
  name: 'web-1',
  namespace: 'shop',
  uid: 'u1',
  resourceVersion: '7',
  labels,
  annotations,
  ownerReferences
}
const preStop = { exec: { command: ['sh', '-c', 'curl -m 5 http://a/v1/prestop || sleep 5'] } }
const ports = [
  { name: 'http', containerPort: 8080, hostPort: 80, port: 80, nodePort: 30_080, protocol: 'TCP' }
]
const pod = {
  metadata,
  spec: {
    containers: [{ name: 'app', ports, lifecycle: { preStop } }],
    nodeName: 'n',
    hostNetwork: true,
    clusterIP: '10.9.0.1',
    ports
  },
  status: {
    phase: 'Running',
    podIPs: [{ ip: '10.0.0.1' }, { ip: 'fd00::1' }],
    conditions: [{ type: 'Ready', status: 'True' }],
    containerStatuses: [{ restartCount: 1, state: { running: { startedAt: '2026-01-01T00:00:00Z' } } }],
    loadBalancer: { ingress: [{ ip: '192.0.2.1', hostname: 'a.example' }] }
  },
  addressType: 'IPv4',
  endpoints: [
    { addresses: ['10.0.0.1'], conditions: { terminating: true }, targetRef: { kind: 'Pod', uid: 'u1' } }
  ],
  ports
}
const word = {
  said: 2,
  asked: 2,
  places: 1,
  sole: ['routes/1'],
  succeeded: [],
  hidden: 0,
  others: [{ places: 1, nodes: ['10.0.0.2:80'], more: 0 }],
  cut: 0,
  tag: 't'
}
const entry = {
  uid: 'u1',
  ip: '10.0.0.1',
  state: 'sealed',
  ttl: 300,
  inflight: { requests: 0, long: 0 },
  bypasses: 0,
  late: 0,
  word
}
const counts = { moved: 0, succeeded: 0, refused: 0, bypasses: 0, errors: 0 }
const answer = {
  wire: 1,
  instance: 'i',
  plugin: '0.2.0',
  fit: true,
  unfit: [],
  now: 1,
  entries: [entry, entry],
  unknown: ['u2'],
  held: { entries: 2, generation: 3, late: 0 },
  workers: [{ id: 0, pid: 1, fit: true, revision: 7, revisions: { routes: 7 } }],
  counts
}
const nodes = [
  { host: '10.0.0.1', port: 80, weight: 1 },
  { host: '[fd00::1]', port: 80, weight: 0 }
]
const rules = [{ weighted_upstreams: [{ upstream: { nodes: { '10.0.0.1:80': 1, 'web.shop': 2 } } }] }]
const route = {
  id: '1',
  name: 'shop_web_80',
  labels,
  upstream: { nodes, name: 'x', scheme: 'tcp' },
  plugins: { 'traffic-split': { rules } }
}
const dump = [
  { id: 'a', endpoints: [{ name: 'shop/web', value: JSON.stringify({ http: nodes }) }] },
  { endpoints: [] }
]

/** Texts that the readers know. */
export const SAMPLES: readonly string[] = [
  ...[
    { type: 'MODIFIED', object: pod },
    { kind: 'PodList', metadata: { continue: 'c', resourceVersion: '9' }, items: [pod, pod] },
    answer,
    [{ key: '/apisix/routes/1', value: route, modifiedIndex: 7 }, route],
    { total: 2, list: [route, { key: 'k', value: route }] },
    { endpoints: dump },
    { request: { uid: 'r', kind: { kind: 'Pod' }, object: pod } }
  ].map(value => JSON.stringify(value)),
  'namespace=shop&pod=web-1&uid=u1&timeout=5s'
]

export const INJECT: InjectSettings = {
  hook: 'curl',
  url: 'http://a/v1/prestop',
  host: 'a',
  certificateFile: 'c',
  keyFile: 'k',
  volumes: []
}
