import type { Hook } from '../rules/drain/drain.ts'
import { DURATION_FORM, parseDuration } from '../rules/drain/duration.ts'
import { refuse, type Refusal } from '../round/hold/refusal.ts'

/** The parameters of a hook's call. All of them are optional. */
export interface PrestopQuery {
  readonly ok: true
  readonly times: Pick<Hook, 'timeoutMs' | 'sleepMs' | 'atLeastMs'>
  readonly named: { readonly namespace: string; readonly name: string } | undefined
  readonly uid: string | undefined
  readonly container: string | undefined
}

const TIMES = ['timeout', 'sleep', 'atLeast'] as const
const KNOWN = [...TIMES, 'namespace', 'pod', 'uid', 'container']
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
  const [timeoutMs, sleepMs, atLeastMs] = TIMES.map(key => {
    const text = query.get(key)
    const ms = text === null ? undefined : parseDuration(text)
    if (text !== null && ms === undefined) problems.push(`${key} must be ${DURATION_FORM}`)
    return ms
  })
  if (timeoutMs === 0) problems.push('timeout must be longer than 0')
  const [namespace, name, uid] = [query.get('namespace'), query.get('pod'), query.get('uid')]
  if ((namespace === null) !== (name === null))
    problems.push('namespace and pod go together; give both or none')
  for (const key of ['namespace', 'pod', 'container'])
    if (!KUBERNETES_NAME.test(query.get(key) ?? 'none'))
      problems.push(`${key} is no name that Kubernetes allows`)
  if (uid !== null && !UID.test(uid)) problems.push('uid is no uid')

  if (problems.length > 0) return refuse('bad-request', problems.join('; '))
  return {
    ok: true,
    times: { timeoutMs, sleepMs, atLeastMs },
    named: namespace !== null && name !== null ? { namespace, name } : undefined,
    uid: uid ?? undefined,
    container: query.get('container') ?? undefined
  }
}

const printable = (text: string) => JSON.stringify(text.slice(0, 40))
