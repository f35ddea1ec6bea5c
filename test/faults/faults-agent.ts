import { setImmediate as turn } from 'node:timers/promises'
import { pick, type Break } from './stage.ts'

const STALL_MS = 400

export const AGENT_FAULTS = {
  // The agent ends without a shutdown: hooks are refused, connections are closed, and all work in progress is lost.
  'agent: killed': async (stage, which) => {
    const agent = pick(stage.agents, which)
    if (!agent) return () => {}
    stage.agents.splice(stage.agents.indexOf(agent), 1)
    await stage.endAgent(agent)
    return () => stage.startAgent()
  },
  'agent: replaced at once': async (stage, which) => {
    const agent = pick(stage.agents, which)
    if (!agent) return () => {}
    stage.agents.splice(stage.agents.indexOf(agent), 1)
    await Promise.all([stage.endAgent(agent), stage.startAgent()])
    return () => {}
  },
  'agent: event loop stalls': () => {
    // This whole process stops for a while, as if its CPU quota were used up.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, STALL_MS)
    return () => {}
  },
  // As after SIGSTOP: timers do not fire during the pause. Then due timers fire before the API server's events arrive.
  'agent: paused': (stage, which) => {
    const agent = pick(stage.agents, which)
    if (!agent) return () => {}
    const resume = stage.pauseAgent(agent)
    const thaw = stage.rig.kubernetes.faults.freezeConnections({ newOnes: true })
    return async () => {
      resume()
      await turn()
      thaw()
    }
  },
  // One agent loses its API server, and the other one does not.
  'agent: blind': async (stage, which) => {
    const agent = pick(stage.agents, which)
    return (await (agent && stage.wayOf(agent)?.cut())) ?? (() => {})
  },
  // The API server is away for all agents, and for nobody else.
  'agent: all blind': async stage => {
    const mends = await Promise.all(stage.agents.map(async agent => stage.wayOf(agent)?.cut()))
    return () => Promise.all(mends.map(async mend => mend?.()))
  },
  // The watches of one agent fall silent, and it does not notice at first.
  'agent: lags': (stage, which) => {
    const agent = pick(stage.agents, which)
    return (agent && stage.wayOf(agent)?.hold()) ?? (() => {})
  },
  'owner: writes all of it again': stage => {
    stage.ownerWrites()
    return () => {}
  }
} satisfies Readonly<Record<string, Break>>
