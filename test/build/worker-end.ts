/**
 * Mocha's parallel workers get SIGTERM one second after they are asked to exit (workerpool, `workerTerminateTimeout`). Writing the
 * coverage of a whole suite takes longer, so a worker ignores the signal: it exits by itself, or after its parent.
 */
if (process.env['MOCHA_WORKER_ID'] !== undefined) process.on('SIGTERM', () => {})
