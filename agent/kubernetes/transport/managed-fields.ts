/** Quotes inside a string are escaped, so these bytes are always a key. `managedFields` is never the first key of its object. */
const KEY = Buffer.from(',"managedFields":[')
const [QUOTE, BACKSLASH, OPEN, CLOSE] = [0x22, 0x5c, 0x5b, 0x5d]

/**
 * A JSON document of the API server without any `managedFields` (the last writer of each field). The agent never reads them. They
 * are half of a pod, and half of the time that parsing many pods takes. The API server cannot leave them out: it offers whole
 * objects or bare metadata.
 */
export function withoutManagedFields(json: Buffer): string {
  let text = ''
  let from = 0
  for (let at = json.indexOf(KEY); at !== -1; at = json.indexOf(KEY, from)) {
    const end = endOfArray(json, at + KEY.length)
    if (end === undefined) break
    text += json.toString('utf8', from, at)
    from = end
  }
  return text + json.toString('utf8', from)
}

/** The index after an array's closing bracket; `at` is the first byte inside the array. `undefined`: there is no closing bracket. */
function endOfArray(json: Buffer, at: number): number | undefined {
  let depth = 1
  let quoted = false
  for (let i = at; i < json.length; i += 1) {
    const byte = json[i]
    if (quoted) {
      if (byte === BACKSLASH) i += 1
      else if (byte === QUOTE) quoted = false
    } else if (byte === QUOTE) quoted = true
    else if (byte === OPEN) depth += 1
    else if (byte === CLOSE && --depth === 0) return i + 1
  }
  return undefined
}
