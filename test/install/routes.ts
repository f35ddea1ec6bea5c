/** Returns an ApisixRoute that sends all paths to a Service. */
export const apisixRoute = (name: string, servicePort: number) => ({
  apiVersion: 'apisix.apache.org/v2',
  kind: 'ApisixRoute',
  metadata: { name },
  spec: { http: [{ name: 'all', match: { paths: ['/*'] }, backends: [{ serviceName: name, servicePort }] }] }
})

/** Returns an Ingress that sends all paths to a Service. */
export const ingress = (name: string, port: number) => ({
  apiVersion: 'networking.k8s.io/v1',
  kind: 'Ingress',
  metadata: { name },
  spec: {
    ingressClassName: 'apisix',
    rules: [
      {
        host: `${name}.example`,
        http: {
          paths: [{ path: '/', pathType: 'Prefix', backend: { service: { name, port: { number: port } } } }]
        }
      }
    ]
  }
})
