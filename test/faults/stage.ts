import type { Gateway } from '../../sandbox/apisix/gateway.ts'
import type { TestAgent } from '../build/agent.ts'
import type { OwnWay } from '../build/own-way.ts'
import type { Rig } from '../build/rig.ts'

/** The parts that a fault can break, besides the rig itself. */
export interface Stage {
  readonly rig: Rig
  /** The agents that run. */
  readonly agents: TestAgent[]
  startAgent(): Promise<void>
  /** Ends the agent, even if it is paused. */
  endAgent(agent: TestAgent): Promise<void>
  /** Stops the agent's timers until the returned function is called. */
  pauseAgent(agent: TestAgent): () => void
  /** The agent's own way to the API server; only if a fault needs it. */
  wayOf(agent: TestAgent): OwnWay | undefined
  /** The proxies of Ready gateways, which get requests. */
  readonly proxies: string[]
  /** Gateways whose pods end: they never become Ready again. */
  readonly leaving: Set<Gateway>
  /** Makes the gateway's pod not Ready. The gateway then gets no more requests. */
  unready(gateway: Gateway): void
  /** Makes the gateway's pod Ready once its probe succeeds and the API server is reachable. Then the gateway gets requests. */
  ready(gateway: Gateway): Promise<void>
  /** Moves the API server's clock, in ms. */
  readonly moveServerClock: (ms: number) => void
  /** Reports a problem, in words. */
  readonly blame: (what: string) => void
  /** Makes the owner write its holder again. */
  ownerWrites(): void
}

/** Injects a fault. The returned function ends it. `which` selects the gateway, worker or agent. */
export type Break = (stage: Stage, which: number) => Promise<() => unknown> | (() => unknown)

export const pick = <T>(list: readonly T[], which: number): T | undefined => list[which % list.length]

/** Returns a gateway that runs; `which` selects it. */
export const runningGateway = ({ rig }: Stage, which: number): Gateway | undefined =>
  pick(
    rig.gateways.filter(({ running }) => running),
    which
  )
