import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'

/**
 * A TCP connection that can misbehave below TLS and HTTP/2. With one of Node's own sockets, native code would continue to
 * read, and to answer pings.
 */
export class Wire extends Duplex {
  readonly #socket: Socket
  #frozen = false
  #held: (() => void)[] = []

  constructor(socket: Socket) {
    super({ allowHalfOpen: true })
    this.#socket = socket
    socket.setNoDelay(true)
    socket.on('data', chunk => {
      if (!this.push(chunk)) socket.pause()
    })
    socket.on('end', () => this.push(null))
    socket.on('error', err => this.destroy(err))
    socket.on('close', () => this.destroy())
  }

  /**
   * Half-open: nothing is read, nothing is written, nothing is closed. Later writes wait for `thaw`, as in the buffer of a kernel: the
   * writer is told that they are done.
   */
  freeze(): void {
    this.#frozen = true
    this.#socket.pause()
  }

  thaw(): void {
    this.#frozen = false
    this.#socket.resume()
    for (const go of this.#held.splice(0)) go()
  }

  /** Drops the connection with a RST. */
  reset(): void {
    // A socket that is shutting down refuses a reset (EINVAL), and its handle would keep the process alive.
    if (this.#socket.writableEnded) this.#socket.destroy()
    else this.#socket.resetAndDestroy()
  }

  override _read(): void {
    if (!this.#frozen) this.#socket.resume()
  }

  override _write(chunk: Buffer, encoding: BufferEncoding, done: (err?: Error | null) => void): void {
    if (!this.#frozen) return void this.#socket.write(chunk, encoding, done)
    this.#held.push(() => void this.#socket.write(chunk, encoding))
    done()
  }

  override _final(done: () => void): void {
    const go = () => void this.#socket.end()
    if (this.#frozen) this.#held.push(go)
    else go()
    // At once: Node's TLS may write in the meantime, and asserts that no end is under way (js_stream_socket.js, doWrite).
    done()
  }

  override _destroy(err: Error | null, done: (err: Error | null) => void): void {
    // Destroyed without an end: the peer must see a RST, as if the process had died.
    this.reset()
    done(err)
  }
}
