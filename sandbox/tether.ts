// Preloaded (`--import`) into a child that knows nothing of the sandbox: it ends with the sandbox, even when that was
// killed and could end nobody. Does not keep the child alive by itself.
process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'))
process.channel?.unref()
