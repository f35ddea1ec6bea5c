import { X509Certificate } from 'node:crypto'
import { readPair, type InjectSettings } from '../../hook/inject/settings.ts'
import { ok, warn, wordsOf, type Check } from './finding.ts'

/** A certificate that ends earlier than this, in ms, is warned about: its renewal is late. */
const SOON_MS = 7 * 86_400_000

/** Checks the webhook's certificate. Without a valid one, pods are still created, but without a hook: a warning, no failure. */
export function checkInjection(read: () => InjectSettings, now: () => number): Check {
  return async () => {
    const bad = (why: string) =>
      warn(
        'injection',
        `the webhook has no valid certificate, so pods are made without the hook: ${why}`,
        'look at the Secret of webhookTLS (chart), and at its cert-manager Certificate if there is one'
      )
    try {
      const settings = read()
      const certificate = new X509Certificate(readPair(settings).certificate)
      const until = certificate.validTo
      if (certificate.checkHost(settings.host) === undefined) return [bad(`it is not for ${settings.host}`)]
      if (certificate.validToDate.getTime() < now() + SOON_MS) return [bad(`it ends ${until}`)]
      return [ok('injection', `the webhook has a certificate until ${until}`)]
    } catch (err) {
      return [bad(wordsOf(err))]
    }
  }
}
