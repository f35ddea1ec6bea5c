import { createHash, timingSafeEqual } from 'node:crypto'

/** Whether two secrets are the same. Takes as long for a good guess as for a bad one, whatever the lengths. */
export function isSameSecret(a: string, b: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(a), digest(b))
}

/** What follows `Bearer`; `undefined` where there is no such header. */
export const bearerOf = (authorization: string | undefined): string | undefined =>
  /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1]
