import type { Gateway } from '../../sandbox/apisix/gateway.ts'
import type { TestAgent } from '../build/agent.ts'
import type { Rig } from '../build/rig.ts'

/** The parts that a fault can break, besides the rig itself. */
export interface Stage {
  readonly rig: Rig
  /** The agents that run. */
  readonly agents: TestAgent[]
  startAgent(): Promise<void>
  /** Ends it, paused or not. */
  endAgent(agent: TestAgent): Promise<void>
  /** Stops the agent's timers until the returned function is called. */
  pauseAgent(agent: TestAgent): () => void
  /** Proxies that get requests: those of Ready gateways. */
  readonly proxies: string[]
  /** Gateways whose pods end: they never become Ready again. */
  readonly leaving: Set<Gateway>
  /** Makes the gateway's pod not Ready; it gets no more requests. */
  unready(gateway: Gateway): void
  /** Makes its pod Ready as a kubelet does: once its probe succeeds and the API server is reachable. Then it gets requests. */
  ready(gateway: Gateway): Promise<void>
  /** Moves the API server's clock, in ms. */
  readonly moveServerClock: (ms: number) => void
  /** Reports a problem, in words. */
  readonly blame: (what: string) => void
  /** Makes the owner write all holders again, as far as possible. */
  ownerWrites(): void
}

/** Breaks something now; the returned function mends it. `which` picks one of several. */
export type Break = (stage: Stage, which: number) => Promise<() => unknown> | (() => unknown)

export const pick = <T>(list: readonly T[], which: number): T | undefined => list[which % list.length]

/** A gateway that runs. */
export const runningGateway = ({ rig }: Stage, which: number): Gateway | undefined =>
  pick(
    rig.gateways.filter(({ running }) => running),
    which
  )
