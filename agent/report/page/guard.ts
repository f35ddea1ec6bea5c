import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../../base/clock.ts'
import type { DashboardConfig } from '../../config/config.ts'
import type { Millis } from '../../rules/drain/facts.ts'
import type { IncomingMessage } from 'node:http'

/** The credentials of a request, and its address. */
export interface Shown {
  readonly authorization: string | undefined
  readonly cookie: string | undefined
  /** Of the connection: wrong tokens are counted per address. */
  readonly address: string | undefined
}

/** Decides who may see the dashboard. */
export interface Guard {
  admits(shown: Shown): boolean
  /** Whether a sender that was admitted still would be: the token was not rotated, and its session has not expired. */
  remains(shown: Shown): boolean
  /** The value of a session cookie for a client that knows the token; `undefined` for any other. */
  login(token: string, address: string | undefined): string | undefined
  /** Seconds until this address may send a token again, after too many wrong ones; 0: now. */
  waitSeconds(address: string | undefined): number
}

export const SESSION_COOKIE = 'apisix_drain_session'
/** One working day, in seconds. */
export const SESSION_SECONDS = 12 * 3600

/**
 * A session is its expiry time, signed with the token. The agent stores no sessions, so a restart ends none, and a new token
 * ends all of them.
 */
export function createGuard(auth: DashboardConfig['auth'], clock: Pick<Clock, 'now'>): Guard {
  if (auth.kind === 'none') {
    return {
      admits: () => true,
      remains: () => true,
      login: () => undefined,
      waitSeconds: () => 0
    }
  }
  const { token } = auth
  const guesses = createGuesses(clock)
  const isRight = (given: string, address = ''): boolean => {
    if (guesses.waitSeconds(address) > 0) return false
    if (isSameSecret(given, token.read())) return true
    guesses.wrong(address)
    return false
  }
  const sign = (until: string) => createHmac('sha256', token.read()).update(`session ${until}`).digest('hex')
  const session = (): string => {
    const until = String(Math.round(clock.now()) + SESSION_SECONDS * 1000)
    return `${until}.${sign(until)}`
  }
  const isSession = (cookie: string | undefined): boolean => {
    const [until = '', signature = ''] = (sessionOf(cookie) ?? '').split('.')
    return isSameSecret(signature, sign(until)) && Number(until) > clock.now()
  }

  return {
    waitSeconds: (address = '') => guesses.waitSeconds(address),
    admits({ authorization, cookie, address }) {
      const bearer = bearerOf(authorization)
      return bearer === undefined ? isSession(cookie) : isRight(bearer, address)
    },
    remains({ authorization, cookie }) {
      const bearer = bearerOf(authorization)
      // A rotated token is no guess, so it must not count against its address.
      return bearer === undefined ? isSession(cookie) : isSameSecret(bearer, token.read())
    },
    login(given, address) {
      return isRight(given, address) ? session() : undefined
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

/**
 * Whether a page of this origin may open the stream. A browser sends cookies with the WebSocket of any site, so this check keeps other
 * sites out. Clients other than browsers send no Origin.
 */
export const isOwnOrigin = (origin: string | undefined, host: string | undefined): boolean =>
  origin === undefined || (URL.canParse(origin) && new URL(origin).host === host)

/** Whether two secrets are equal. The time does not show how much of a guess was right. */
export function isSameSecret(a: string, b: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(a), digest(b))
}

/** The text after `Bearer`; `undefined` if there is no such header. */
export const bearerOf = (authorization: string | undefined): string | undefined =>
  /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1]

/** Bounds how often a token can be guessed from one address. */
interface Guesses {
  /** Seconds until the address may try again; 0: now. */
  waitSeconds(address: string): number
  wrong(address: string): void
}

/** Wrong tokens that one address may send within a minute; then it must wait until the minute is over. */
export const MOST = 10
export const WITHIN_MS = 60_000
/** How many addresses are remembered; beyond that, the oldest is forgotten. */
const ADDRESSES = 1000

interface Tries {
  readonly since: Millis
  readonly count: number
}

/** Behind a proxy all users share its address, and ten wrong tokens a minute among them: still enough for people. */
function createGuesses(clock: Pick<Clock, 'now'>): Guesses {
  const tries = new Map<string, Tries>()
  const current = (address: string): Tries | undefined => {
    const known = tries.get(address)
    if (known && clock.now() - known.since < WITHIN_MS) return known
    tries.delete(address)
    return undefined
  }
  return {
    waitSeconds(address) {
      const known = current(address)
      if (!known || known.count < MOST) return 0
      return Math.max(1, Math.ceil((known.since + WITHIN_MS - clock.now()) / 1000))
    },
    wrong(address) {
      const { since, count } = current(address) ?? { since: clock.now(), count: 0 }
      tries.set(address, { since, count: count + 1 })
      const [oldest] = tries.keys()
      if (tries.size > ADDRESSES && oldest !== undefined) tries.delete(oldest)
    }
  }
}

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
