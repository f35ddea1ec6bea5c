import { expect } from 'chai'
import { eventually } from '../plugin/eventually.ts'
import { installAgent } from './agent.ts'
import { APP, HELPER } from './images/names.ts'
import { NAMESPACE, type WorkloadOptions } from './objects/workload.ts'
import { answered, endedInTime, kube, lostNothing, observing, PROVED, restart } from './scenario.ts'
import { world } from './setup.ts'
import { together, type Together } from './together.ts'

const [REPOSITORY, TAG] = HELPER.split(':')
/** The values of the installation. `injecting` adds the value that enables the injection. */
const VALUES = {
  'config.apisix.barrier': { scheme: 'http' },
  'injection.helper.image.repository': REPOSITORY,
  'injection.helper.image.tag': TAG
}
const LABEL = 'apisix-drain.io/inject'

/** Containers with ports beside an app that declares none. They end at once at SIGTERM. */
const BESIDE = [
  ['exporter', 9100],
  ['mesh', 15_001]
].map(([name, port]) => ({
  name,
  image: APP,
  imagePullPolicy: 'Never',
  ports: [{ containerPort: port }],
  env: Object.entries({ PORT: String(port), AT_TERM: 'exit' }).map(([name, value]) => ({ name, value }))
}))

/** Injects hooks by a policy or a webhook while the tests run. The next suite installs the agent with its own values. */
function injecting(way: 'policy' | 'webhook'): void {
  before(async () => {
    await installAgent(world(), { ...VALUES, [`injection.${way}.enabled`]: true })
    await kube('label', 'namespace', NAMESPACE, `${LABEL}=true`)
    const tried = ['run', 'tried', '--image=none', '--port=1', '--dry-run=server', '--output=json'] as const
    // The API server applies a policy a moment after its creation, and a webhook once its agents run.
    await eventually('hooks are added', async () => (await kube(...tried)).includes('apisix-drain-hook'))
  })
  after(() => kube('label', 'namespace', NAMESPACE, `${LABEL}-`))
}

function areAddedTo(
  side: Together,
  what: string,
  name: string,
  options: Partial<WorkloadOptions> = {}
): void {
  const { replicas = 3, beside = [] } = options
  const load = { answerMs: 100, rate: replicas > 3 ? 250 : 100 }
  const scenario = { name, options: { ...options, replicas, arm: 'none' as const }, ends: replicas, load }
  const seen = observing(side, { ...scenario, act: web => restart(web) })
  it(`are added to ${what}, and lose no request`, async () => {
    const observed = await seen()
    lostNothing(observed)
    endedInTime(observed, replicas)
    answered(observed, PROVED)
    expect(observed.hooks).to.have.length(replicas * (1 + beside.length))
    // A hook that the agent does not answer sleeps, and is not counted.
    expect(observed.answers[PROVED]).to.be.at.least(replicas)
  })
}

/** The agent's own webhook, for a Kubernetes without mutating admission policies. */
describe('hooks injected by the webhook', () => {
  const side = together(2)
  injecting('webhook')
  areAddedTo(side, 'a Deployment', 'by-webhook')
  areAddedTo(side, 'a native sidecar', 'sidecar-by-webhook', { asSidecar: true })
})

/** The chart's own policy adds the hooks. */
describe('hooks injected by the policy', () => {
  const side = together(3)
  injecting('policy')
  const many = { replicas: 8, container: { ports: [] }, beside: BESIDE }
  areAddedTo(together(1), 'every container of eight pods at 250 requests a second', 'by-policy', many)
  areAddedTo(side, 'a native sidecar', 'sidecar-by-policy', { asSidecar: true })

  const own = observing(side, {
    name: 'own-hook',
    options: { replicas: 2 },
    ends: 2,
    async act(web) {
      await restart(web)
      const pods = await kube('get', 'pods', '--selector=app=own-hook', '--output=json')
      expect(pods).to.include('curl').and.not.include('apisix-drain-hook')
    }
  })
  it('leave an existing hook alone', async () => {
    const observed = await own()
    lostNothing(observed)
    endedInTime(observed, 2)
    answered(observed, PROVED)
  })
})
