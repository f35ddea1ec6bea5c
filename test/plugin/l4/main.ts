import { parseArgs } from 'node:util'
import { TcpLoad } from './load.ts'
import { RealApisix } from './real-apisix.ts'
import { drain, Pod, type End } from './rounds.ts'

const HELP = `Kills TCP backends behind a real APISIX, at the moment at which the plugin reports them drained. By hand: it needs an
APISIX with its stream subsystem, built elsewhere, whose nginx has apisix-nginx-module.

  node test/plugin/l4/main.ts --apisix DIR --bin DIR

  --apisix DIR    the folder of APISIX: apisix/, conf/ and deps/ are in it (/usr/local/apisix)
  --bin DIR       a folder with the programs openresty and luajit (it comes first in PATH)
  --plugin DIR    default: plugin-config of this checkout
  --rounds N      backends to kill, default 100
  --workers N     default 4
  --control N     rounds in which a backend is killed without a drain, default 10: connections must be lost

LUA_PATH and LUA_CPATH are passed on. It listens on loopback only.`

const { values } = parseArgs({
  options: {
    apisix: { type: 'string' },
    bin: { type: 'string' },
    plugin: { type: 'string', default: new URL('../../../plugin-config', import.meta.url).pathname },
    rounds: { type: 'string', default: '100' },
    workers: { type: 'string', default: '4' },
    control: { type: 'string', default: '10' },
    help: { type: 'boolean', default: false }
  }
})

if (values.help || !values.apisix || !values.bin) {
  console.log(HELP)
  process.exit(values.help ? 0 : 2)
}

const pods = [await Pod.start('127.0.0.2'), await Pod.start('127.0.0.3')] as const
const gateway = await RealApisix.start({
  apisix: values.apisix,
  bin: values.bin,
  plugin: values.plugin,
  workers: Number(values.workers),
  nodes: pods.map(({ host, port }) => `${host}:${port}`)
})

async function play(title: string, rounds: number, end: End): Promise<number> {
  const load = new TcpLoad(gateway.tcpPort)
  const acks: number[] = []
  for (let round = 0; round < rounds; round += 1) {
    const pod = pods[round % 2] as Pod
    const { uid } = pod
    acks.push(await end(pod, gateway.barrier))
    await pod.kill()
    load.ack()
    await pod.again()
    await gateway.barrier.remove(uid)
  }
  const { short, long, lost, lostAfterAck } = await load.stop()
  acks.sort((a, b) => a - b)
  console.log(
    `${title}: ${rounds} rounds, ${short} short and ${long} long connections, ${lost.length} lost ` +
      `(${lostAfterAck} after an ack), ack p50 ${acks[acks.length >> 1]?.toFixed(0)} ms, max ${acks.at(-1)?.toFixed(0)} ms`
  )
  for (const why of new Set(lost)) console.log(`  lost: ${why}`)
  return lost.length
}

try {
  const state = await gateway.barrier.state()
  console.log(`APISIX ${state.apisix}, ${state.workers.length} workers: ${gateway.versions}`)
  const lost = await play('drained, then SIGKILL', Number(values.rounds), drain)
  const control = await play('control: SIGKILL without a drain', Number(values.control), async () => 0)
  const { counts } = await gateway.barrier.state()
  console.log(`counts: ${JSON.stringify(counts)}`)
  process.exitCode = lost === 0 && control > 0 ? 0 : 1
} finally {
  await gateway.stop()
  for (const pod of pods) await pod.kill()
}
