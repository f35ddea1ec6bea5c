import { readFile, writeFile } from 'node:fs/promises'
import { startBalancer, type Balancer } from './balancer.ts'
import type { Rig } from './rig.ts'

/** A way to the API server for one agent alone. */
export interface OwnWay {
  /** The settings of an agent that uses it. */
  readonly settings: Readonly<Record<string, string>>
  /** Ends all connections and refuses new ones, until the returned function is called. */
  cut(): Promise<() => Promise<void>>
  /** Lets nothing through, while all connections stay, until the returned function is called: the agent does not notice at first. */
  hold(): () => void
  close(): Promise<void>
}

export async function ownWay(rig: Rig): Promise<OwnWay> {
  const common = rig.settings['KUBERNETES_KUBECONFIG'] ?? ''
  const text = await readFile(common, 'utf8')
  const server = /https?:\/\/[^\s"]+/.exec(text)?.[0] ?? ''
  const { hostname, port } = new URL(server)
  const host = rig.address()
  const open = () => startBalancer(host, [Number(port)], [hostname])
  const kubeconfig = `${common}-${host}`
  await writeFile(kubeconfig, text.replaceAll(hostname, host))
  let way: Balancer | undefined = await open()
  return {
    settings: { KUBERNETES_KUBECONFIG: kubeconfig },
    async cut() {
      await way?.close()
      way = undefined
      return async () => void (way ??= await open())
    },
    hold: () => way?.hold() ?? (() => {}),
    close: async () => way?.close()
  }
}
