import { createHash, timingSafeEqual } from 'node:crypto'

/** Whether two secrets are equal. The time does not show how much of a guess was right. */
export function isSameSecret(a: string, b: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(a), digest(b))
}

/** The text after `Bearer`; `undefined` if there is no such header. */
export const bearerOf = (authorization: string | undefined): string | undefined =>
  /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1]
