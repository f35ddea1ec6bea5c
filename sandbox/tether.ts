// Preloaded (`--import`) into a child process that knows nothing of the sandbox. The child then ends with the sandbox, even
// if the sandbox was killed and could not end it. The channel does not keep the child alive.
process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'))
process.channel?.unref()
