// A server ends a connection that is idle for 5 s. A test that could not run at that time would send its next request into it, and fail
// with "other side closed". So each request has a connection of its own.
const { fetch } = globalThis
globalThis.fetch = (input, init) => {
  const headers = new Headers(init?.headers)
  headers.set('connection', 'close')
  return fetch(input, { ...init, headers })
}

/**
 * Mocha's parallel workers get SIGTERM one second after they are asked to exit (workerpool, `workerTerminateTimeout`). Writing the
 * coverage of a whole suite takes longer, so a worker ignores the signal: it exits by itself, or after its parent.
 */
if (process.env['MOCHA_WORKER_ID'] !== undefined) process.on('SIGTERM', () => {})
