import { DURATION_FORM, parseDuration } from '../rules/drain/duration.ts'
import { refuse, type Refusal } from '../round/hold/refusal.ts'

/** The parameters of a hook's call. All of them are optional. */
export interface PrestopQuery {
  readonly ok: true
  readonly timeoutMs: number | undefined
  readonly named: { readonly namespace: string; readonly name: string } | undefined
  readonly uid: string | undefined
}

const KNOWN = ['timeout', 'namespace', 'pod', 'uid']
/** RFC 1123 subdomain, the form of pod names; a namespace is shorter. A text of another form is refused without a look-up. */
const KUBERNETES_NAME = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/
const UID = /^[A-Za-z0-9-]{1,128}$/

/** The query of `/v1/prestop`. A wrong hook should fail in its first test, so unknown parameters are refused. */
export function parseQuery(query: URLSearchParams): PrestopQuery | Refusal {
  const problems: string[] = []
  const unknown = [...query.keys()].find(key => !KNOWN.includes(key))
  if (unknown !== undefined)
    problems.push(`${printable(unknown)} is no parameter; there are ${KNOWN.join(', ')}`)
  for (const key of KNOWN) if (query.getAll(key).length > 1) problems.push(`${key} is given more than once`)
  const timeout = query.get('timeout')
  const timeoutMs = timeout === null ? undefined : parseDuration(timeout)
  if (timeout !== null && timeoutMs === undefined) problems.push(`timeout must be ${DURATION_FORM}`)
  if (timeoutMs === 0) problems.push('timeout must be longer than 0')
  const [namespace, name, uid] = [query.get('namespace'), query.get('pod'), query.get('uid')]
  if ((namespace === null) !== (name === null))
    problems.push('namespace and pod go together; give both or none')
  for (const [key, value] of [
    ['namespace', namespace],
    ['pod', name]
  ] as const) {
    if (value !== null && !KUBERNETES_NAME.test(value))
      problems.push(`${key} is no name that Kubernetes allows`)
  }
  if (uid !== null && !UID.test(uid)) problems.push('uid is no uid')

  if (problems.length > 0) return refuse('bad-request', problems.join('; '))
  return {
    ok: true,
    timeoutMs,
    named: namespace !== null && name !== null ? { namespace, name } : undefined,
    uid: uid ?? undefined
  }
}

const printable = (text: string) => JSON.stringify(text.slice(0, 40))
