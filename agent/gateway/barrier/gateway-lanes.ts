import type { GatewayFact } from '../../rules/drain/facts.ts'

/** What a part of the agent keeps for one gateway, and the calls that it makes there. A slow gateway delays only its own lane. */
interface Lane {
  /** The gateway is listed again. */
  readonly listed?: (gateway: GatewayFact) => void
  stop(): Promise<unknown>
}

/** One lane for each gateway. It ends when the gateway is gone, or has another address. */
interface Lanes<L> {
  /** Takes the complete list of gateways. */
  readonly list: (gateways: readonly GatewayFact[]) => void
  get(gatewayId: string): L | undefined
  all(): readonly L[]
  /** Resolves when no lane has a call under way. */
  readonly stop: () => Promise<void>
}

export function createLanes<L extends Lane>(open: (gateway: GatewayFact) => L): Lanes<L> {
  const lanes = new Map<string, { readonly ip: string; readonly lane: L }>()
  const closing = new Set<Promise<unknown>>()
  const list = (gateways: readonly GatewayFact[]): void => {
    const current = new Map(gateways.map(gateway => [gateway.id, gateway]))
    for (const [id, { ip, lane }] of lanes) {
      if (current.get(id)?.ip === ip) continue
      lanes.delete(id)
      const work: Promise<unknown> = lane.stop().finally(() => closing.delete(work))
      closing.add(work)
    }
    for (const gateway of current.values()) {
      const known = lanes.get(gateway.id)
      if (known) known.lane.listed?.(gateway)
      else lanes.set(gateway.id, { ip: gateway.ip, lane: open(gateway) })
    }
  }
  return {
    list,
    get: id => lanes.get(id)?.lane,
    all: () => [...lanes.values()].map(({ lane }) => lane),
    async stop() {
      list([])
      await Promise.all(closing)
    }
  }
}
