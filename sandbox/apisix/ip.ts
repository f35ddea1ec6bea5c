import { isIP } from 'node:net'

/** The canonical form of an address: lower case, IPv6 compressed and without brackets. `undefined` if `text` is not an address. */
export function canonicalIp(text: string): string | undefined {
  const family = isIP(text)
  if (family === 4) return text
  return family === 6 && !text.includes('%') ? new URL(`http://[${text}]`).hostname.slice(1, -1) : undefined
}
