/**
 * Mocha's parallel workers get SIGTERM one second after they are asked to exit (workerpool, `workerTerminateTimeout`). Writing the
 * coverage of a whole suite takes longer, so a worker ignores the signal: it exits by itself, or when its parent is gone.
 */
if (process.env['MOCHA_WORKER_ID'] !== undefined) process.on('SIGTERM', () => {})
