import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Writes the files that a kube-apiserver needs. Returns the token of an administrator, and the flags that name the files. */
export function writeApiServerFiles(folder: string): {
  readonly token: string
  readonly flags: readonly string[]
} {
  const file = (name: string) => join(folder, name)
  const token = randomBytes(16).toString('hex')
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  writeFileSync(file('tokens.csv'), `${token},admin,1,"system:masters"\n`, { mode: 0o600 })
  writeFileSync(file('sa.key'), privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 })
  const flags = [
    `--cert-dir=${file('certs')}`,
    `--service-account-key-file=${file('sa.key')}`,
    `--service-account-signing-key-file=${file('sa.key')}`,
    '--service-account-issuer=https://kubernetes.default.svc',
    `--token-auth-file=${file('tokens.csv')}`,
    '--authorization-mode=RBAC'
  ]
  return { token, flags }
}
