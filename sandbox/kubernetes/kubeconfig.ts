import { writeFile } from 'node:fs/promises'

/** A kubeconfig with one context, in the form `kubectl` and client-node read (JSON is YAML). */
export function kubeconfigFor(server: { url: string; ca: string | undefined; token: string }) {
  const name = 'sandbox'
  return {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      {
        name,
        cluster: {
          server: server.url,
          ...(server.ca === undefined
            ? {}
            : { 'certificate-authority-data': Buffer.from(server.ca).toString('base64') })
        }
      }
    ],
    users: [{ name, user: { token: server.token } }],
    contexts: [{ name, context: { cluster: name, user: name, namespace: 'default' } }],
    'current-context': name
  }
}

/** Writes the file so that only its owner can read it: it holds the token. */
export async function writeKubeconfig(path: string, config: ReturnType<typeof kubeconfigFor>): Promise<void> {
  await writeFile(path, `${JSON.stringify(config, null, 2)}\n`, { mode: 0o600 })
}
