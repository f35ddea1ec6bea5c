import type { Mistake, Place } from './mistake.ts'

const HOOK = 'http://apisix-drain.apisix:8080/v1/prestop?namespace=$POD_NAMESPACE&pod=$POD_NAME'
const CURL = 'curl -fsS --noproxy "*"'

/** Returns a function that creates a pod with this hook, and the Service of the agents. */
const hooked = (command: string) => (place: Place) => {
  const { store } = place.rig.kubernetes
  store.create('namespaces', { metadata: { name: 'drain' } })
  store.create('services', {
    metadata: { namespace: 'apisix', name: 'apisix-drain' },
    spec: { ports: [{ port: 8080 }] }
  })
  store.create('pods', {
    metadata: { namespace: 'shop', name: 'web-1' },
    spec: {
      containers: [
        { name: 'app', image: 'web', lifecycle: { preStop: { exec: { command: ['sh', '-c', command] } } } }
      ]
    }
  })
}

/** All mistakes: first those on the command line, at the end those in the cluster. */
export const MISTAKES: readonly Mistake[] = [
  {
    title: 'a command is misspelled',
    args: ['docter'],
    exit: 2,
    says: [/^there is no command docter; there are run, doctor, status, plugin \(see --help\)\n$/]
  },
  {
    title: 'an option of another command',
    args: ['--json'],
    exit: 2,
    says: [/--json belongs to doctor, status, plugin/]
  },
  {
    title: 'the file of the configuration is not there',
    args: ['--config', '/nowhere/config.yaml'],
    exit: 2,
    says: [/\/nowhere\/config\.yaml: cannot be read \(ENOENT\); check --config/]
  },
  {
    title: 'the configuration is no YAML',
    args: [],
    file: 'apisix:\n  admin: { url: "http://x"\n',
    exit: 2,
    says: [/config\.yaml:\d+:\d+: is no YAML/]
  },
  {
    title: 'a setting is misspelled',
    args: [],
    file: 'drain: { reserv: 5s }\n',
    exit: 2,
    says: [/drain\.reserv: no such setting; there are reserve, /]
  },
  {
    title: 'a duration without a unit',
    args: [],
    file: 'drain: { reserve: "5" }\n',
    exit: 2,
    says: [/drain\.reserve: write a duration: a number and a unit, such as 3s/]
  },
  {
    title: 'the key itself is in the configuration',
    args: [],
    file: 'apisix: { admin: { key: edd1c9f0 } }\n',
    exit: 2,
    says: [/apisix\.admin\.key: a secret is not written into the configuration; use keyFile/]
  },
  {
    title: 'the Secret of the key is not mounted',
    args: [],
    settings: () => ({
      APISIX_ADMIN_KEY: undefined,
      APISIX_ADMIN_KEY_FILE: '/nowhere/admin-key'
    }),
    exit: 2,
    says: [/apisix\.admin\.keyFile: cannot take the secret from \/nowhere\/admin-key: there is no such file/]
  },
  {
    title: 'no URL of the Admin API',
    args: [],
    settings: () => ({ APISIX_ADMIN_URL: undefined }),
    exit: 2,
    says: [/apisix\.admin\.url: is required, such as "http/]
  },
  {
    title: 'the URL of the Admin API has a path',
    args: [],
    settings: ({ rig }) => ({ APISIX_ADMIN_URL: `${rig.admin.url}/apisix/admin` }),
    exit: 2,
    says: [/apisix\.admin\.url: leave out everything after the port/]
  },
  {
    title: 'the port of the agent is in use',
    args: [],
    settings: ({ ports }) => ({
      SERVE_HOST: '127.0.0.1',
      SERVE_PORT: String(ports.page)
    }),
    exit: 1,
    says: [/could not start: .*EADDRINUSE/, /serve\.port/]
  },
  {
    title: 'the Admin key is wrong',
    args: ['doctor'],
    settings: () => ({ APISIX_ADMIN_KEY: 'not-the-key' }),
    exit: 1,
    says: [/FAIL +admin-api: .*-> 401/, /credentials\.admin, or .*secretName, or .*admin_key/],
    once: /refused us/
  },
  {
    title: 'the host name of the Admin API is misspelled',
    args: ['doctor'],
    settings: () => ({ APISIX_ADMIN_URL: 'http://apisix-admim.invalid:9180' }),
    exit: 1,
    says: [/\((ENOTFOUND|EAI_AGAIN)\)/, /the host name has no address: correct it in apisix\.admin\.url/],
    once: /ENOTFOUND|EAI_AGAIN/
  },
  {
    title: 'the port of the Admin API is wrong',
    args: ['doctor'],
    settings: ({ ports }) => ({ APISIX_ADMIN_URL: `http://127.0.0.1:${ports.closed}` }),
    exit: 1,
    says: [/ECONNREFUSED/, /check apisix\.admin\.url/],
    once: /ECONNREFUSED/
  },
  {
    title: 'https for an Admin API without TLS',
    args: ['doctor'],
    settings: ({ ports }) => ({ APISIX_ADMIN_URL: `https://127.0.0.1:${ports.page}` }),
    exit: 1,
    says: [/EPROTO|WRONG_VERSION/, /write http instead of https in apisix\.admin\.url/]
  },
  {
    title: 'the CA of the Admin API is not given',
    args: ['doctor'],
    settings: ({ ports }) => ({ APISIX_ADMIN_URL: `https://127.0.0.1:${ports.tls}` }),
    exit: 1,
    says: [/SELF_SIGNED/, /give the PEM of that CA in apisix\.admin\.caFile/]
  },
  {
    title: 'the URL of the Admin API leads to a login page',
    args: ['doctor'],
    settings: ({ ports }) => ({ APISIX_ADMIN_URL: `http://127.0.0.1:${ports.page}` }),
    exit: 1,
    says: [/check that apisix\.admin\.url points to one and not to a proxy or a login page/]
  },
  {
    title: 'the kubeconfig leads to kubectl proxy (HTTP/1.1)',
    args: ['doctor'],
    settings: ({ kubeconfigs }) => ({ KUBERNETES_KUBECONFIG: kubeconfigs.http1 }),
    exit: 1,
    says: [/does not offer HTTP\/2, which the agent needs/, /skip +rbac/],
    once: /HTTP\/2/
  },
  {
    title: 'nothing listens at the address of the kubeconfig',
    args: ['doctor'],
    settings: ({ kubeconfigs }) => ({ KUBERNETES_KUBECONFIG: kubeconfigs.closed }),
    exit: 1,
    says: [/ECONNREFUSED/, /check server of the kubeconfig/],
    once: /ECONNREFUSED/
  },
  {
    title: 'the kubeconfig has the CA of another cluster',
    args: ['doctor'],
    settings: ({ kubeconfigs }) => ({ KUBERNETES_KUBECONFIG: kubeconfigs.otherCa }),
    exit: 1,
    says: [/give the PEM of that CA in certificate-authority of the kubeconfig/],
    once: /does not trust/
  },
  {
    title: 'a namespace of the configuration does not exist',
    args: ['doctor'],
    settings: () => ({ KUBERNETES_NAMESPACES: 'shpo' }),
    exit: 1,
    says: [/FAIL +namespaces: .*shpo, which does not exist/, /correct kubernetes\.namespaces/]
  },
  {
    title: 'the selector finds no gateway',
    args: ['doctor'],
    settings: () => ({ APISIX_GATEWAYS_SELECTOR: 'app=apisixx' }),
    exit: 1,
    says: [/no gateway is known, in .* with labels app=apisixx/, /correct apisix\.gateways/]
  },
  {
    title: 'agent and plugin have different tokens',
    args: ['doctor'],
    settings: () => ({ APISIX_BARRIER_TOKEN: 'not-the-token' }),
    exit: 1,
    says: [/FAIL +barrier: .*401/, /apisix\.barrier\.tokenFile/],
    once: /refused our token/
  },
  {
    title: 'the plugin is not used',
    args: ['doctor'],
    settings: () => ({
      APISIX_BARRIER_PORT: undefined,
      APISIX_BARRIER_SCHEME: undefined,
      APISIX_BARRIER_TOKEN: undefined
    }),
    exit: 0,
    says: [/warn +barrier: the plugin is not used/, /set apisix\.barrier/]
  },
  {
    title: 'hooks call a Service that does not exist',
    args: ['doctor'],
    prepare: hooked(`${CURL} "${HOOK.replace('apisix:', 'apixis:')}" || sleep 5`),
    exit: 0,
    says: [/there is no Service apisix-drain in namespace apixis: correct the host/]
  },
  {
    title: 'hooks call a wrong port, without -f and without a fallback',
    args: ['doctor'],
    prepare: hooked(`curl -sS --noproxy "*" "${HOOK.replace('8080', '8081')}"`),
    exit: 0,
    says: [
      /calls port 8081, and Service apisix\/apisix-drain has port 8080/,
      /takes a refusal of the agent for success: add -f/,
      /has no fallback.*add "\|\| sleep 5"/
    ]
  },
  {
    title: 'pods behind APISIX have no hook',
    args: ['doctor'],
    prepare({ rig }) {
      rig.upstream('web', [rig.pod('web-7', { owner: { kind: 'ReplicaSet', name: 'web' } })])
    },
    exit: 0,
    says: [/APISIX lists shop\/ReplicaSet\/web \(1 pod\)/, /add the hook/]
  },
  {
    title: 'status while no agent runs',
    args: ['status'],
    settings: ({ ports }) => ({ SERVE_PORT: String(ports.closed) }),
    exit: 2,
    says: [/no agent answers at/, /--url/]
  }
]
