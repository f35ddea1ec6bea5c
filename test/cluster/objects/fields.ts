/** An environment variable that the downward API fills. */
export const field = (name: string, fieldPath: string): object => ({
  name,
  valueFrom: { fieldRef: { fieldPath } }
})

export const namespace = (name: string, labels: Readonly<Record<string, string>> = {}): object => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name, labels }
})

export const secret = (
  namespace: string,
  name: string,
  stringData: Readonly<Record<string, string>>
): object => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { namespace, name },
  stringData
})

export const service = (
  namespace: string,
  name: string,
  selector: Readonly<Record<string, string>>,
  ports: readonly object[]
): object => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { namespace, name, labels: selector },
  spec: { selector, ports }
})
