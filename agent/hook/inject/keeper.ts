import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { ApiError } from '../../kubernetes/transport/api-error.ts'
import type { Cluster } from '../../kubernetes/facts/cluster.ts'
import { fieldsOf, listOf, textOf, type Fields } from '../../base/read.ts'
import { isFresh, makePair, type Pair } from './certificate.ts'
import type { InjectSettings } from './settings.ts'

interface KeeperParts {
  readonly call: Cluster['call']
  readonly settings: Pick<InjectSettings, 'host' | 'namespace' | 'secret' | 'configuration'>
  readonly clock: Clock
  readonly log: Log
  /** Called with every new pair to serve. */
  readonly onPair: (pair: Pair) => void
}

/** How often the Secret is read, in ms: a replica may use the previous certificate for this long. */
const EVERY_MS = 60_000
/** The pause after a failure, in ms. */
const RETRY_MS = 2000
const CONFLICT = 409

/**
 * Keeps the webhook's certificate in a Secret that all agents share, renews it in time, and gives it to the API server. The order of
 * the steps keeps every call valid. A new certificate goes into the Secret, then into the webhook's configuration next to the previous
 * certificate. Only after that do agents serve with it. The first agent writes the Secret; the others get a conflict, and read the
 * result.
 *
 * Returns the function that stops the renewal.
 */
export function keepCertificate({ call, settings, clock, log, onPair }: KeeperParts): () => void {
  const ended = new AbortController()
  const secretPath = `/api/v1/namespaces/${settings.namespace}/secrets/${settings.secret}`
  const configurationPath = `/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/${settings.configuration}`
  let served: string | undefined
  void keep()
  return () => ended.abort(new Error('the agent is stopping'))

  async function keep(): Promise<void> {
    while (!ended.signal.aborted) {
      const pause = await turn().catch((err: unknown) => {
        const raced = err instanceof ApiError && err.status === CONFLICT
        if (!raced && !ended.signal.aborted)
          log.warn({ err }, 'the certificate of the webhook could not be kept')
        return RETRY_MS
      })
      await clock.sleep(pause, ended.signal).catch(() => {})
    }
  }

  async function turn(): Promise<number> {
    const { pair, before } = await pairOf(await get(secretPath))
    await trust([pair.certificate, ...(before === undefined ? [] : [before])])
    if (served !== pair.certificate) onPair(pair)
    served = pair.certificate
    return EVERY_MS
  }

  /** The pair in the Secret, and the certificate before it. If the pair is invalid or due for renewal, a new pair is written first. */
  async function pairOf(secret: Fields): Promise<{ pair: Pair; before: string | undefined }> {
    const data = fieldsOf(secret['data'])
    const read = (name: string) => {
      const text = textOf(data[name])
      return text === undefined ? undefined : Buffer.from(text, 'base64').toString()
    }
    const old: Pair = { certificate: read('tls.crt') ?? '', key: read('tls.key') ?? '' }
    if (isFresh(old, settings.host, clock.now())) return { pair: old, before: read('previous.crt') }
    const pair = await makePair(settings.host, clock.now())
    const before = old.certificate || undefined
    const written = {
      'tls.crt': base64(pair.certificate),
      'tls.key': base64(pair.key),
      ...(before !== undefined && { 'previous.crt': base64(before) })
    }
    await put(secretPath, { ...secret, data: written })
    log.info({ secret: settings.secret }, 'made a certificate for the webhook')
    return { pair, before }
  }

  /** Makes the API server trust these certificates, and no others, for the agent's webhooks. */
  async function trust(certificates: readonly string[]): Promise<void> {
    const configuration = await get(configurationPath)
    const caBundle = base64(certificates.join('\n'))
    const webhooks = listOf(configuration['webhooks']).map(fieldsOf)
    if (webhooks.every(({ clientConfig }) => fieldsOf(clientConfig)['caBundle'] === caBundle)) return
    const told = webhooks.map(webhook => ({
      ...webhook,
      clientConfig: { ...fieldsOf(webhook['clientConfig']), caBundle }
    }))
    await put(configurationPath, { ...configuration, webhooks: told })
  }

  async function get(path: string): Promise<Fields> {
    const { status, json } = await call('GET', path, undefined, ended.signal)
    if (status !== 200) throw new ApiError(`GET ${path}`, status, json)
    return fieldsOf(json)
  }

  /** Writes with the resourceVersion that was read. If another writer was quicker, it throws an ApiError with status 409. */
  async function put(path: string, body: Fields): Promise<void> {
    const { status, json } = await call('PUT', path, body, ended.signal)
    if (status !== 200) throw new ApiError(`PUT ${path}`, status, json)
  }
}

const base64 = (text: string) => Buffer.from(text).toString('base64')
