// Preloaded (`--import`) into a child that knows nothing of the sandbox: it ends with the sandbox, even if the sandbox was
// killed and could not end its children. Does not keep the child alive by itself.
process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'))
process.channel?.unref()
