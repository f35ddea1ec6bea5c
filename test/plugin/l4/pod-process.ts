import { createServer, type AddressInfo } from 'node:net'

/** A TCP echo server. Its two arguments are its host and port. It reports its port in a message. */
const [host, port = '0'] = process.argv.slice(2)

const server = createServer(socket => {
  socket.on('error', () => socket.destroy())
  socket.pipe(socket)
})
server.listen(Number(port), host, () => process.send?.({ port: (server.address() as AddressInfo).port }))
process.on('disconnect', () => process.exit())
