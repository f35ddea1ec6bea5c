import { pick, type Break } from './stage.ts'

const STALL_MS = 400

export const AGENT_FAULTS = {
  // Nothing is flushed: hooks are refused, connections are closed, whatever was under way is given up.
  'agent: killed': async (stage, which) => {
    const agent = pick(stage.agents, which)
    if (!agent) return () => {}
    stage.agents.splice(stage.agents.indexOf(agent), 1)
    await agent.close()
    return () => stage.startAgent()
  },
  'agent: replaced at once': async (stage, which) => {
    const agent = pick(stage.agents, which)
    if (!agent) return () => {}
    stage.agents.splice(stage.agents.indexOf(agent), 1)
    await Promise.all([agent.close(), stage.startAgent()])
    return () => {}
  },
  'agent: event loop stalls': () => {
    // Everything in this process stands still, as when the CPU quota is used up.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, STALL_MS)
    return () => {}
  },
  'owner: writes all of it again': stage => {
    stage.ownerWrites()
    return () => {}
  }
} satisfies Readonly<Record<string, Break>>
