import { expect } from 'chai'
import { bare, only, render, WEBHOOK } from './helm.ts'
import { firstContainer, podOf, workloadOf } from './pods.ts'

describe('chart workload', () => {
  const manifests = () => bare()
  const deployment = () => workloadOf(only(manifests(), 'Deployment'))
  const agent = () => firstContainer(podOf(only(manifests(), 'Deployment')))

  it('runs every pod as the Pod Security level restricted requires, with a read-only root file system', () => {
    const pods = render({}, 'everything-values.yaml').filter(
      ({ kind }) => kind === 'Deployment' || kind === 'Pod'
    )
    expect(pods).to.have.length(2)
    for (const pod of pods.map(podOf)) {
      expect(pod.securityContext).to.deep.equal({
        runAsNonRoot: true,
        runAsUser: 65532,
        runAsGroup: 65532,
        fsGroup: 65532,
        seccompProfile: { type: 'RuntimeDefault' }
      })
      expect(pod.initContainers).to.equal(undefined)
      for (const { securityContext } of pod.containers) {
        expect(securityContext).to.deep.equal({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] }
        })
      }
      const sources = (pod.volumes ?? []).flatMap(({ name: _name, ...source }) => Object.keys(source))
      expect(sources.filter(source => source !== 'configMap' && source !== 'projected')).to.deep.equal([])
      for (const field of ['hostNetwork', 'hostPID', 'hostIPC']) expect(pod).not.to.have.property(field)
    }
  })

  it('leaves the ids to OpenShift, in the pods with hooks too', () => {
    const ids = { runAsUser: null, runAsGroup: null, fsGroup: null }
    const rendered = bare({ podSecurityContext: ids, ...WEBHOOK })
    const secure = { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } }
    expect(podOf(only(rendered, 'Deployment')).securityContext).to.deep.equal(secure)
    expect(JSON.stringify(rendered)).to.include('runAsNonRoot: true').and.not.include('65532')
  })

  it('takes volumes, DNS, a strategy and objects of the operator', () => {
    const rendered = bare({
      extraVolumes: [{ name: 'ca', emptyDir: {} }],
      extraVolumeMounts: [{ name: 'ca', mountPath: '/ca' }],
      dnsConfig: { nameservers: ['10.0.0.2'] },
      'strategy.rollingUpdate.maxSurge': 2,
      extraObjects: [{ apiVersion: 'v1', kind: 'Secret', metadata: { name: '{{ .Release.Name }}-mine' } }]
    })
    const pod = podOf(only(rendered, 'Deployment'))
    expect(pod.volumes?.at(-1)).to.deep.equal({ name: 'ca', emptyDir: {} })
    expect(firstContainer(pod).volumeMounts?.at(-1)).to.deep.equal({ name: 'ca', mountPath: '/ca' })
    expect(pod).to.have.deep.property('dnsConfig', { nameservers: ['10.0.0.2'] })
    expect(only(rendered, 'Deployment')).to.have.nested.property('spec.strategy.rollingUpdate.maxSurge', 2)
    expect(rendered.map(({ metadata: { name } }) => name)).to.include('apisix-drain-mine')
  })

  it('mounts whole folders, read only: a subPath would not follow a rotation', () => {
    expect(agent().volumeMounts).to.deep.equal([
      { name: 'config', mountPath: '/etc/apisix-drain', readOnly: true },
      { name: 'secrets', mountPath: '/run/secrets/apisix-drain', readOnly: true }
    ])
  })

  it('probes liveness by /healthz and readiness by /readyz', () => {
    const probe = (path: string) => ({ httpGet: { path, port: 'http' } })
    const { startupProbe, livenessProbe, readinessProbe, ports } = agent()
    expect(startupProbe).to.deep.include(probe('/healthz'))
    expect(livenessProbe).to.deep.include(probe('/healthz'))
    expect(readinessProbe).to.deep.include(probe('/readyz'))
    expect(ports).to.deep.equal([
      { name: 'http', containerPort: 8080, protocol: 'TCP' },
      { name: 'page', containerPort: 8081, protocol: 'TCP' }
    ])
  })

  it('keeps accepting hooks for a while after its termination began, without a shell', () => {
    expect(agent().lifecycle).to.deep.equal({
      preStop: { exec: { command: ['node', '-e', 'setTimeout(() => {}, 5000)'] } }
    })
    const none = firstContainer(podOf(only(bare({ preStopSeconds: 0 }), 'Deployment')))
    expect(none.lifecycle).to.deep.equal({
      preStop: { exec: { command: ['node', '-e', 'setTimeout(() => {}, 0)'] } }
    })
  })

  it('has enough grace for its hook, the held hooks, and closing', () => {
    expect(podOf(only(manifests(), 'Deployment')).terminationGracePeriodSeconds).to.be.at.least(5 + 20 + 9)
  })

  it('never has fewer agents than configured during an update', () => {
    const { replicas, strategy } = deployment()
    expect(replicas).to.equal(2)
    expect(strategy).to.deep.equal({
      type: 'RollingUpdate',
      rollingUpdate: { maxUnavailable: 0, maxSurge: 1 }
    })
    expect(only(manifests(), 'PodDisruptionBudget')['spec']).to.deep.equal({
      maxUnavailable: 1,
      unhealthyPodEvictionPolicy: 'AlwaysAllow',
      selector: { matchLabels: deployment().selector.matchLabels }
    })
  })

  it('spreads agents over hosts if possible, or as configured', () => {
    expect(podOf(only(manifests(), 'Deployment')).affinity).to.have.nested.property(
      'podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.topologyKey',
      'kubernetes.io/hostname'
    )
    const affinity = { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [] } }
    expect(podOf(only(bare({ affinity }), 'Deployment')).affinity).to.deep.equal(affinity)
  })

  it('exposes the agents under the name that every hook calls', () => {
    const service = only(manifests(), 'Service')
    expect(service.metadata).to.include({ name: 'apisix-drain', namespace: 'apisix' })
    expect(service['spec']).to.deep.equal({
      type: 'ClusterIP',
      selector: deployment().selector.matchLabels,
      ports: [
        { name: 'http', port: 8080, targetPort: 'http', protocol: 'TCP', appProtocol: 'http' },
        { name: 'page', port: 8081, targetPort: 'page', protocol: 'TCP', appProtocol: 'http' }
      ]
    })
    expect(deployment().template.metadata.labels).to.include(deployment().selector.matchLabels)
  })

  it('keeps the selector independent of added labels, because it cannot be changed later', () => {
    const labelled = workloadOf(only(render({}, 'everything-values.yaml'), 'Deployment'))
    expect(labelled.selector).to.deep.equal(deployment().selector)
    expect(labelled.template.metadata.labels).to.include({ 'example.org/team': 'edge' })
  })

  it('listens on the configured ports, which the Service finds by name', () => {
    const all = bare({ 'config.serve.port': 9000 })
    expect(firstContainer(podOf(only(all, 'Deployment'))).ports[0]).to.include({ containerPort: 9000 })
    expect(only(all, 'Service')).to.have.nested.property('spec.ports[0].targetPort', 'http')
  })

  it('prefers the digest of the image to its tag, and the tag to the version', () => {
    const image = (values: Record<string, string>) =>
      firstContainer(podOf(only(bare({ 'image.repository': 'r/x', ...values }), 'Deployment'))).image
    const digest = `sha256:${'0'.repeat(64)}`
    expect(image({})).to.equal('r/x:0.3.0')
    expect(image({ 'image.tag': 'edge' })).to.equal('r/x:edge')
    expect(image({ 'image.tag': 'edge', 'image.digest': digest })).to.equal(`r/x@${digest}`)
  })

  it('makes its configuration path available to doctor too', () => {
    expect(agent().env).to.deep.equal([
      { name: 'APISIX_DRAIN_CONFIG', value: '/etc/apisix-drain/config.yaml' }
    ])
    expect(agent().args).to.deep.equal(['run'])
  })

  it('takes the times of probes', () => {
    const { livenessProbe } = firstContainer(podOf(only(render({}, 'everything-values.yaml'), 'Deployment')))
    const httpGet = { path: '/healthz', port: 'http' }
    const times = { periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 5 }
    expect(livenessProbe).to.deep.equal({ httpGet, ...times })
  })

  it('gives every object the same labels and annotations, besides its own', () => {
    const { annotations } = only(render({}, 'everything-values.yaml'), 'Ingress').metadata
    expect(annotations).to.deep.equal({ 'example.org/of': 'ingress', 'example.org/owner': 'edge' })
    const own: Record<string, Record<string, string>> = {
      ServiceMonitor: { release: 'prometheus' },
      PrometheusRule: { release: 'prometheus' },
      'apisix-drain-grafana': { grafana_dashboard: '1' }
    }
    for (const { kind, metadata } of render({}, 'everything-values.yaml')) {
      expect(metadata.labels, kind).to.include(own[kind] ?? own[metadata.name] ?? {})
      if (kind !== 'Pod') expect(metadata.annotations, kind).to.include({ 'example.org/owner': 'edge' })
      expect(metadata.labels, kind).to.include({
        'app.kubernetes.io/instance': 'apisix-drain',
        'app.kubernetes.io/managed-by': 'Helm'
      })
    }
  })
})
