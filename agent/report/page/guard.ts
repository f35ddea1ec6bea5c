import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../../base/clock.ts'
import type { DashboardConfig } from '../../config/config.ts'
import type { IncomingMessage } from 'node:http'

/** The credentials of a request. */
interface Shown {
  readonly authorization: string | undefined
  readonly cookie: string | undefined
}

/** Decides who may see the dashboard. */
export interface Guard {
  admits(shown: Shown): boolean
  /** The value of a session cookie for a client that knows the token; `undefined` for any other. */
  login(token: string): string | undefined
}

export const SESSION_COOKIE = 'apisix_drain_session'
/** One working day, in seconds. */
export const SESSION_SECONDS = 12 * 3600

/**
 * A session is its expiry time, signed with the token. The agent stores no sessions, so a restart ends none, and a new token
 * ends all of them. Guesses are not counted: nobody guesses a long random token, and behind a proxy they would lock out everybody.
 */
export function createGuard(auth: DashboardConfig['auth'], clock: Pick<Clock, 'now'>): Guard {
  if (auth.kind === 'none') return { admits: () => true, login: () => undefined }
  const { token } = auth
  const sign = (until: string) => createHmac('sha256', token.read()).update(`session ${until}`).digest('hex')
  const isSession = (cookie: string | undefined): boolean => {
    const [until = '', signature = ''] = (sessionOf(cookie) ?? '').split('.')
    return isSameSecret(signature, sign(until)) && Number(until) > clock.now()
  }
  return {
    admits({ authorization, cookie }) {
      const bearer = bearerOf(authorization)
      return bearer === undefined ? isSession(cookie) : isSameSecret(bearer, token.read())
    },
    login(given) {
      if (!isSameSecret(given, token.read())) return undefined
      const until = String(Math.round(clock.now()) + SESSION_SECONDS * 1000)
      return `${until}.${sign(until)}`
    }
  }
}

function sessionOf(cookies: string | undefined): string | undefined {
  const prefix = `${SESSION_COOKIE}=`
  return cookies
    ?.split(/; */)
    .find(cookie => cookie.startsWith(prefix))
    ?.slice(prefix.length)
}

/** Whether two secrets are equal. The time does not show how much of a guess was right. */
export function isSameSecret(a: string, b: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(a), digest(b))
}

/** The text after `Bearer`; `undefined` if there is no such header. */
export const bearerOf = (authorization: string | undefined): string | undefined =>
  /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1]

/** The part of the connection that handlers get. `@hono/node-server` sets it; tests pass their own. */
export interface Connection {
  readonly incoming: {
    readonly socket: Pick<IncomingMessage['socket'], 'remoteAddress'> &
      Partial<Pick<IncomingMessage['socket'], 'destroy'>>
  }
}

/**
 * A socket's address in the form of `status.podIPs`. An IPv4 address that a dual-stack listener sees as `::ffff:10.0.0.7`
 * becomes `10.0.0.7`. A zone (`fe80::1%eth0`) is dropped, and hex digits become lower case.
 */
export function normaliseAddress(address: string): string {
  const [plain = ''] = address.toLowerCase().split('%', 1)
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(plain)
  return mapped?.[1] ?? plain
}
