import { expect } from 'chai'
import { eventually } from '../plugin/eventually.ts'
import { APP } from './images/names.ts'
import { world } from './setup.ts'

const POD = {
  metadata: { name: 'one', labels: { app: 'one' } },
  spec: {
    containers: [
      {
        name: 'app',
        image: APP,
        imagePullPolicy: 'Never',
        env: [{ name: 'POD_IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } }],
        readinessProbe: { httpGet: { path: '/', port: 8080 }, periodSeconds: 1 }
      }
    ]
  }
}
const SERVICE = {
  metadata: { name: 'one' },
  spec: { selector: { app: 'one' }, ports: [{ port: 80, targetPort: 8080 }] }
}

/** Tests the parts of the cluster that all other tests need. */
describe('the cluster itself', () => {
  it('runs a pod, which reaches a Service by its name, and ends it', async () => {
    const { cluster, kube } = world()
    const { controlPlane } = cluster
    const created = async (path: string, body: unknown) =>
      expect((await controlPlane.call('POST', `/api/v1/namespaces/default/${path}`, body)).status).to.equal(
        201
      )
    await eventually('the namespace has its ServiceAccount', async () => {
      const { status } = await controlPlane.call('GET', '/api/v1/namespaces/default/serviceaccounts/default')
      return status === 200
    })
    await created('services', SERVICE)
    await created('pods', POD)
    await kube('wait', 'pod/one', '--for=condition=Ready', '--timeout=60s')
    // The name resolves at once, but connections fail until kube-proxy knows the address.
    const asked = ['curl', '-fsS', '--retry', '9', '--retry-all-errors', 'http://one.default/']
    const said = await kube('exec', 'one', '--', ...asked)
    expect(said).to.include('"method":"GET"')
    await kube('delete', 'pod/one', 'service/one')
  })
})
