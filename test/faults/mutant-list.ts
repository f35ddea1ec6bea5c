/** An agent that is broken in one place, and what must come of it. */
export interface Mutant {
  readonly name: string
  readonly edits: readonly {
    /** From `agent/`. */
    readonly file: string
    readonly find: string
    readonly replace: string
  }[]
  /** What the suite must say. */
  readonly expected: RegExp
  /** What is drawn, so that a few runs are enough. */
  readonly only: readonly string[]
}

export const MUTANTS: readonly Mutant[] = [
  {
    name: '1: answers grade barrier with no entry anywhere',
    edits: [
      { file: 'loop.ts', find: 'barrier?.desire(settings.plan.dryRun ?', replace: 'barrier?.desire(true ?' },
      {
        file: 'confirm/proof.ts',
        find: "const barrierAt = counts && entry.state === 'idle' ? barrier?.unchangedSince : undefined",
        replace: 'const barrierAt = since'
      },
      { file: 'confirm/proof.ts', find: "contrary: entry.state === 'busy'", replace: 'contrary: false' },
      {
        file: 'confirm/proof.ts',
        find: "entry.state !== 'idle' && seen.undecided ? seen.why : ''",
        replace: "''"
      }
    ],
    expected: /requests reached .* after an ack of grade barrier/,
    only: ['barrier', 'Admin API: hangs', 'before the deletion']
  },
  {
    name: '1: a gateway that said busy is released when its plugin calls itself unfit',
    edits: [{ file: 'confirm/proof.ts', find: 'barrier?.binding\n', replace: 'false\n' }],
    expected: /was answered .* with \d+ requests in flight/,
    only: ['barrier', 'gateway: reloads', 'while the hook is held']
  },
  {
    name: '2: answers when the grace is over, and the second net is late too',
    edits: [
      {
        file: 'loop.ts',
        find: "if (said.kind === 'wait') return said.until",
        replace:
          "const lateAt = (drain?.deadline ?? now) + 2000; if (said.kind === 'wait' || now < lateAt) return lateAt"
      },
      { file: 'serve/prestop.ts', find: 'graceEnds - reserve / 2', replace: 'graceEnds + 5000' }
    ],
    expected: /was answered \d+ ms after its deadline/,
    only: ['barrier', 'Admin API: hangs']
  },
  {
    name: '3: takes out the last node',
    edits: [
      {
        file: 'plan/policies.ts',
        find: 'return dead && holder.nodes.some(takesOver) ? [] : [last]',
        replace: 'return []'
      },
      { file: 'gateway/settle.ts', find: 'holder && lastOf(holder, present)', replace: 'undefined' },
      { file: 'gateway/nodes.ts', find: 'if (all.length === 0 && !edit.mayEmpty)', replace: 'if (false)' }
    ],
    expected: /was emptied of/,
    // Late, so that the agent is quicker than the replacement.
    only: ['observed', 'Admin API: 401', 'after the ack']
  },
  {
    name: '3: takes out a pod that stays',
    edits: [
      {
        file: 'plan/plan.ts',
        find: 'nodes: [...byKey.values()].sort(by(node => node.key))',
        replace: 'nodes: holder.nodes.slice(1).map(node => ({ key: node.key, uid: matches[0].drain.uid }))'
      },
      {
        file: 'loop/still-ending.ts',
        find: 'if (!loop().isEnding(uid, node)) return false',
        replace: 'return true'
      },
      {
        file: 'gateway/removal.ts',
        find: 'answer === true && isEnding(uid, node)',
        replace: 'answer === true'
      }
    ],
    expected: /was taken out of .*, but .* stays/,
    only: ['observed', 'API server: slow']
  },
  {
    name: '4: an entry keeps its address when that is another pod’s',
    edits: [
      {
        file: 'loop/lingering.ts',
        find: 'ips.some(ip => world.ownersOf(ip).some(owner => owner.uid !== uid))',
        replace: 'false'
      },
      { file: 'loop/lingering.ts', find: 'until: now + lingerMs', replace: 'until: now + 60_000' }
    ],
    expected: /sends nothing to same-address/,
    only: ['barrier', 'API server: slow']
  },
  {
    name: '5: what was planned is not written',
    edits: [
      {
        file: 'loop.ts',
        find: 'for (const change of wanted.changes) writer.submit(change)',
        replace: ''
      }
    ],
    expected: /it does not end well/,
    only: ['barrier', 'API server: slow']
  },
  {
    name: '5: a node whose pod went while no agent ran is left',
    edits: [{ file: 'loop/ghosts.ts', find: 'due = mayRepair()', replace: 'due = !mayRepair()' }],
    expected: /it does not end well/,
    only: ['observed', 'agent: killed', 'before the deletion']
  },
  {
    name: '6: takes the word of a watch that is behind',
    edits: [
      {
        file: 'loop/hooks.ts',
        find: 'if (!entries.has(id)) return undefined',
        replace: 'if (!knownToEnd(pod)) return { pod, at: clock.now() }'
      },
      { file: 'loop/hooks.ts', find: 'if (rest <= 0) return', replace: 'if (rest < Infinity) return' }
    ],
    expected: /ends, and was told that it stays/,
    only: ['barrier', 'API server: silent watches', 'before the deletion']
  },
  {
    name: '7: writes a list of nodes that was read before its questions to Kubernetes',
    edits: [
      {
        file: 'gateway/removal.ts',
        find: 'const [answers] = await Promise.all([ask(',
        replace:
          'const early = await read(tools, target); await tools.clock.sleep(400); const [answers] = await Promise.all([ask('
      },
      {
        file: 'gateway/removal.ts',
        find: 'const object = await read(tools, target)\n    const found',
        replace: 'const object = early\n    const found'
      }
    ],
    expected: /was taken out of .*, but .* stays/,
    only: ['observed', 'Admin API: slow', 'before the deletion']
  },
  {
    name: 'leak: entries of pods that are gone are kept for ever',
    edits: [{ file: 'loop/lingering.ts', find: 'now < until &&', replace: 'true &&' }],
    expected: /barrier entries are left/,
    only: ['barrier', 'API server: slow']
  },
  {
    name: 'leak: connections outlive the agent',
    edits: [{ file: 'sources.ts', find: '  sources.hangUp()\n', replace: '' }],
    expected: /connections of agents that are closed are left/,
    only: ['observed', 'API server: slow']
  },
  {
    name: 'leak: timers outlive the agent',
    edits: [
      {
        file: 'loop.ts',
        find: 'stopped = true\n      alarm.stop()',
        replace: 'stopped = true\n      clock.alarm(clock.now() + 60_000, () => {})'
      }
    ],
    expected: /timers of agents that are closed are left/,
    only: ['observed', 'API server: slow']
  }
]
