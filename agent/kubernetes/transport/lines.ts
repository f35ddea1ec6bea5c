const NEWLINE = 0x0a

/** In bytes. etcd refuses objects over 1.5 MB, and JSON adds some. A longer line is not a watch event. */
export const LONGEST_LINE = 16 * 1024 * 1024

/**
 * Splits a byte stream at newlines, wherever its chunks end. It works on bytes: a chunk may end in the middle of a character, and a newline
 * byte is never part of a character.
 *
 * @throws RangeError from the returned function if a line gets longer than `longest` bytes
 */
export function createLineSplitter(
  onLine: (line: string) => void,
  longest = LONGEST_LINE,
  textOf: (line: Buffer) => string = line => line.toString('utf8')
): (chunk: Buffer) => void {
  let held: Buffer[] = []
  let heldBytes = 0
  const emit = (last: Buffer) => {
    const line = textOf(held.length === 0 ? last : Buffer.concat([...held, last]))
    held = []
    heldBytes = 0
    if (line !== '' && line !== '\r') onLine(line)
  }
  return chunk => {
    let from = 0
    for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, from)) {
      const last = chunk.subarray(from, at)
      from = at + 1
      emit(last)
    }
    if (from === chunk.length) return
    held.push(chunk.subarray(from))
    heldBytes += chunk.length - from
    if (heldBytes > longest) throw new RangeError(`a line is longer than ${longest} bytes`)
  }
}
