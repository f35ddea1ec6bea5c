import type { Clock } from '../../base/clock.ts'
import { accountCredentials } from './account.ts'
import type { Credentials, CredentialSource } from './credentials.ts'
import { kubeconfigCredentials } from './kubeconfig.ts'

/** @throws Error that names the file or the setting, if it has no usable cluster or user */
export function loadCredentials(source: CredentialSource, clock: Clock): Credentials {
  return source.kind === 'in-cluster'
    ? accountCredentials(source.account, clock)
    : kubeconfigCredentials(source, clock)
}
