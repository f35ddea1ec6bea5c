/** Returns a pod as the API server sends it. A test names only the fields that differ. */
export function podObject(
  name: string,
  differs: { metadata?: object; spec?: object; status?: object } = {}
): Record<string, unknown> {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      uid: `uid-${name}`,
      name,
      namespace: 'shop',
      resourceVersion: '10',
      labels: { app: 'web' },
      managedFields: [{ manager: 'kubelet' }],
      ...differs.metadata
    },
    spec: {
      nodeName: 'host-1',
      containers: [{ name: 'app', ports: [{ containerPort: 8080 }] }],
      ...differs.spec
    },
    status: {
      phase: 'Running',
      podIP: '10.0.0.1',
      podIPs: [{ ip: '10.0.0.1' }],
      conditions: [{ type: 'Ready', status: 'True' }],
      ...differs.status
    }
  }
}
