import { BlockList, isIP, isIPv6 } from 'node:net'

/**
 * Small readers for JSON of unknown shape. They never throw: a field that is missing or of another type reads as absent. They are
 * written by hand, because a schema library takes more time per pod than all other code (10,000 pods at once).
 */

export type Fields = Readonly<Record<string, unknown>>

const NO_FIELDS: Fields = Object.freeze({})

/** The fields of `T`. Each may be absent or of another type, because the JSON comes unchecked from the server. */
export type FieldsOf<T extends object> = Readonly<Record<keyof T, unknown>>

export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * The value if it is an object, else an object without fields.
 *
 * @typeParam T a model of @kubernetes/client-node, which only names the fields: the value is not checked against it
 */
export function fieldsOf<T extends object = Fields>(value: unknown): FieldsOf<T> {
  return (isRecord(value) ? value : NO_FIELDS) as FieldsOf<T>
}

/** What `read` makes of a text from outside; `undefined` if the text is not JSON, or too long. */
export function jsonOr<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}

/** The value if it is a list, else an empty list. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/** The value if it is a string, and not empty. */
export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

/** The value if it is a finite number. */
export function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined
}

/** A whole number that can be a TCP port. */
export function portOf(value: unknown): number | undefined {
  const port = numberOf(value)
  return port !== undefined && Number.isInteger(port) && port > 0 && port < 65_536 ? port : undefined
}

/** RFC 3339 text as ms since the epoch. */
export function timeOf(value: unknown): number | undefined {
  const at = typeof value === 'string' ? Date.parse(value) : Number.NaN
  return Number.isNaN(at) ? undefined : at
}

/** Whether `status.conditions` has this type with status "True". */
export function conditionIsTrue(conditions: unknown, type: string): boolean {
  for (const condition of listOf(conditions)) {
    const { type: name, status } = fieldsOf(condition)
    if (name === type) return status === 'True'
  }
  return false
}

/** Deep equality of plain objects, arrays and scalars. An absent field equals `undefined`. Two references to one object cost nothing. */
export function same(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false
    return a.every((item: unknown, i) => same(item, b[i]))
  }
  const left = a as Readonly<Record<string, unknown>>
  const right = b as Readonly<Record<string, unknown>>
  for (const key in left) if (!same(left[key], right[key])) return false
  for (const key in right) if (!(key in left) && right[key] !== undefined) return false
  return true
}

/** Text from outside, for a terminal: without the control characters that could move its cursor, or hide or rewrite a line. */
export const clean = (text: string): string => text.replace(/[^\P{C}\n\t]/gu, '')

/** The limits of one item, and of all that is around the items: bytes; brackets, colons and commas; levels, for the stack. And of all items. */
const [MOST_BYTES, MOST_MARKS, MOST_LEVELS, MOST_ITEMS] = [4 * 2 ** 20, 100_000, 100, 10_000]

const [QUOTE, COMMA, COLON, BACKSLASH] = [0x22, 0x2c, 0x3a, 0x5c]
const [OPEN_LIST, CLOSE_LIST, OPEN, CLOSE] = [0x5b, 0x5d, 0x7b, 0x7d]

/** The text is larger than its reader accepts. */
export class TooLong extends Error {
  override readonly name = 'TooLong'
}

interface JsonReaderOptions {
  readonly parse?: (text: Buffer) => unknown
  /** Called with each item as soon as it has come. Its result takes the item's place. */
  readonly each?: ((item: unknown) => unknown) | undefined
  /** Returns what takes the place of an item over the limits, from its beginning. Without it, such an item is an error. */
  readonly beyond?: (beginning: Buffer) => unknown
}

/**
 * The reader of JSON from other programs. It reads while the text comes, and parses a list at the top (`[…]`), or directly below
 * (`{"items":[…]}`), item by item. So no text, of whatever form and length, stops the loop for more than 50 ms.
 */
export function createJsonReader(options: JsonReaderOptions = {}) {
  const { parse = text => JSON.parse(text.toString()) as unknown, each = item => item, beyond } = options
  const newPart = () => ({ pieces: [] as Buffer[], size: 0, marks: 0, isOver: false })
  const lists: unknown[][] = []
  const frame = newPart()
  let part = frame
  /** `itemLevel`: the level of the items of the present list; 0 outside of lists. */
  let [items, level, itemLevel, isQuoted, isEscaped, isBad] = [0, 0, 0, false, false, false]

  const exceed = (what: string): void => {
    if (part === frame || !beyond) throw new TooLong(`more than ${what}`)
    part.isOver = true
  }
  const add = (piece: Buffer): void => {
    if (part.size < MOST_BYTES) part.pieces.push(piece.subarray(0, MOST_BYTES - part.size))
    part.size += piece.length
    if (part.size > MOST_BYTES) exceed(`${MOST_BYTES} bytes in one value`)
  }
  const mark = (): void => {
    if (++part.marks > MOST_MARKS) exceed(`${MOST_MARKS} values in one value`)
  }
  const endItem = (isLast: boolean): void => {
    const { pieces, isOver } = part
    const text = Buffer.concat(pieces)
    const list = lists.at(-1) ?? []
    part = isLast ? frame : newPart()
    if (isLast && list.length === 0 && text.toString().trim() === '') return
    if (++items > MOST_ITEMS) throw new TooLong(`more than ${MOST_ITEMS} items`)
    try {
      list.push(each(isOver && beyond ? beyond(text) : parse(text)))
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error
      isBad = true
    }
  }
  const scan = (chunk: Buffer): void => {
    let from = 0
    const take = (to: number): void => {
      if (to > from) add(chunk.subarray(from, to))
      from = to
    }
    for (let at = 0; at < chunk.length && !isBad; at += 1) {
      const byte = chunk[at]
      if (isQuoted) {
        if (isEscaped) isEscaped = false
        else if (byte === BACKSLASH) isEscaped = true
        else if (byte === QUOTE) isQuoted = false
      } else if (byte === QUOTE) isQuoted = true
      else if (byte === COLON) mark()
      else if (byte === COMMA) {
        mark()
        if (itemLevel === 0 || level > itemLevel) continue
        take(at)
        endItem(false)
        from = at + 1
      } else if (byte === OPEN || byte === OPEN_LIST) {
        level += 1
        mark()
        if (level > MOST_LEVELS) exceed(`${MOST_LEVELS} levels`)
        if (byte === OPEN || itemLevel > 0 || level > 2) continue
        take(at + 1)
        // In the frame, a list consists of its number.
        add(Buffer.from(String(lists.length)))
        lists.push([])
        part = newPart()
        itemLevel = level
      } else if (byte === CLOSE || byte === CLOSE_LIST) {
        level -= 1
        if (level >= itemLevel) continue
        take(at)
        endItem(true)
        isBad ||= byte === CLOSE
        itemLevel = 0
      }
    }
    take(chunk.length)
  }
  return {
    /** @throws TooLong, or an error of `each` */
    write(chunk: Buffer): void {
      if (!isBad) scan(chunk)
    },
    /** The whole value. @throws SyntaxError */
    end(): unknown {
      if (isBad || part !== frame) throw new SyntaxError('this is not JSON')
      const whole = parse(Buffer.concat(frame.pieces))
      if (Array.isArray(whole)) return lists[whole[0] as number]
      if (typeof whole !== 'object') return whole
      const fields = (whole ?? {}) as Record<string, unknown>
      for (const [name, value] of Object.entries(fields))
        if (Array.isArray(value)) fields[name] = lists[value[0] as number]
      return whole
    }
  }
}

/** The value of a whole text. @throws SyntaxError, TooLong */
export function readJson(text: string | Buffer, options?: JsonReaderOptions): unknown {
  const reader = createJsonReader(options)
  reader.write(typeof text === 'string' ? Buffer.from(text) : text)
  return reader.end()
}

/** Returns a function that checks whether an address is in one of these ranges (`10.244.0.0/16`). A domain name is in none. */
export function addressRanges(ranges: readonly string[]): (host: string) => boolean {
  const blocks = new BlockList()
  for (const range of ranges) {
    const [network = '', prefix] = range.split('/')
    blocks.addSubnet(network, Number(prefix), isIPv6(network) ? 'ipv6' : 'ipv4')
  }
  return host => isIP(host) !== 0 && blocks.check(host, isIPv6(host) ? 'ipv6' : 'ipv4')
}

/**
 * The /24 (IPv4) or /64 (IPv6) of an address: the size of range that networks usually give to a host for its pods.
 * `undefined` for any other text.
 */
export function neighbourhoodOf(host: string): string | undefined {
  if (isIP(host) === 0) return undefined
  if (!isIPv6(host)) return host.slice(0, host.lastIndexOf('.'))
  const [head = '', tail] = host.split('::')
  const groups = (text: string | undefined) => (text ? text.split(':') : [])
  const [front, back] = [groups(head), groups(tail)]
  const zeros = Array.from({ length: 8 - front.length - back.length }, () => '0')
  return [...front, ...zeros, ...back].slice(0, 4).join(':')
}

/** The host without brackets, and an IPv6 address in its shortest spelling (RFC 5952), which Kubernetes uses. */
export function canonicalHost(host: string): string {
  const bare = host.startsWith('[') && host.endsWith(']') ? host.slice(1, -1) : host
  if (!bare.includes(':') || !isIPv6(bare)) return bare
  return URL.parse(`http://[${bare}]/`)?.hostname.slice(1, -1) ?? bare
}
