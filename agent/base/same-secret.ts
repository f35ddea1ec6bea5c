import { createHash, timingSafeEqual } from 'node:crypto'

/** Whether two secrets are equal. It takes as long for a bad guess as for a good one, whatever their lengths. */
export function isSameSecret(a: string, b: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(a), digest(b))
}

/** The text after `Bearer`; `undefined` if there is no such header. */
export const bearerOf = (authorization: string | undefined): string | undefined =>
  /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1]
