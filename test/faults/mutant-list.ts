/** An agent that is broken in one place, and what must come of it. */
export interface Mutant {
  readonly name: string
  readonly edits: readonly {
    /** From `agent/`; what plays its counterpart is in `../sandbox/`. */
    readonly file: string
    readonly find: string
    readonly replace: string
  }[]
  readonly found: FoundByRuns | FoundByTest
}

/** By random runs. */
export interface FoundByRuns {
  /** What the suite must say. */
  readonly expected: RegExp
  /** What is drawn, so that a few runs are enough. */
  readonly only: readonly string[]
}

/** By the test that closes the finding (docs/answers.md), where no random run can tell, or only one of thousands. */
export interface FoundByTest {
  readonly file: string
  readonly title: string
}

/** Answers a hook by what the watch knew before, however old that is. */
const ANSWERS_BY_AN_OLD_WATCH = [
  {
    file: 'hold/hooks.ts',
    find: 'if (!entries.has(id)) return undefined',
    replace: 'if (!knownToEnd(pod)) return { pod, at: clock.now() }'
  },
  { file: 'hold/hooks.ts', find: 'if (rest <= 0) return', replace: 'if (rest < Infinity) return' }
] as const

export const MUTANTS: readonly Mutant[] = [
  {
    name: '1: answers grade barrier with no entry anywhere',
    edits: [
      {
        file: 'round/loop.ts',
        find: 'barrier?.desire(settings.plan.dryRun ?',
        replace: 'barrier?.desire(true ?'
      },
      {
        file: 'proof/proof.ts',
        find: "const barrierAt = counts && entry.state === 'idle' ? barrier?.unchangedSince : undefined",
        replace: 'const barrierAt = since'
      },
      { file: 'proof/proof.ts', find: "contrary: entry.state === 'busy'", replace: 'contrary: false' },
      {
        file: 'proof/proof.ts',
        find: "entry.state !== 'idle' && seen.undecided ? seen.why : ''",
        replace: "''"
      }
    ],
    found: {
      expected: /requests reached .* after an ack of grade barrier/,
      only: ['barrier', 'Admin API: hangs', 'before the deletion']
    }
  },
  {
    name: '1: a gateway that said busy is released when its plugin calls itself unfit',
    edits: [{ file: 'proof/proof.ts', find: 'barrier?.binding\n', replace: 'false\n' }],
    found: {
      file: 'test/unit/proof/proof.test.ts',
      title: 'is released by its own fit 0 after the seal, and by nothing else'
    }
  },
  {
    name: 'leak: what a worker had in flight when it crashed is counted for ever',
    edits: [
      {
        file: '../sandbox/apisix/inflight.ts',
        find: 'workers.delete(pid)\n',
        replace: 'workers.set(-pid, workers.get(pid) ?? new Map()) && workers.delete(pid)\n'
      }
    ],
    found: {
      expected: /requests? are counted that are over/,
      only: ['barrier', 'gateway: one worker killed', 'while the hook is held']
    }
  },
  {
    name: '1: entries end by the wall clock of their gateway',
    edits: [
      {
        file: '../sandbox/apisix/barrier.ts',
        find: 'createDenyList(capacity, epochSeconds)',
        replace: 'createDenyList(capacity, () => barrier.now())'
      }
    ],
    found: {
      expected: /a clock that was set made/,
      only: ['barrier', 'gateway: clock jumps ahead', 'gateway: clock jumps back', 'while the hook is held']
    }
  },
  {
    name: '2: answers when the grace is over, and the second net is late too',
    edits: [
      {
        file: 'round/loop.ts',
        find: "if (said.kind === 'wait') return said.until",
        replace:
          "const lateAt = (drain?.deadline ?? now) + 2000; if (said.kind === 'wait' || now < lateAt) return lateAt"
      },
      {
        file: 'hook/prestop.ts',
        find: 'graceEnds - reserveOf(pod, { reserveMs }) / 2',
        replace: 'graceEnds + 5000'
      }
    ],
    found: { expected: /was answered \d+ ms after its deadline/, only: ['barrier', 'Admin API: hangs'] }
  },
  {
    name: '3: takes out the last node',
    edits: [
      {
        file: 'plan/policies.ts',
        find: 'return !helps && holder.nodes.some(takesOver) ? [] : [last]',
        replace: 'return []'
      },
      { file: 'write/reconcile.ts', find: 'holder && lastToLeave(holder, present)', replace: 'undefined' },
      { file: 'apisix/nodes.ts', find: 'if (all.length === 0 && !edit.mayEmpty)', replace: 'if (false)' }
    ],
    // Late, so that the agent is quicker than the replacement.
    found: { expected: /was emptied of/, only: ['observed', 'Admin API: 401', 'after the ack'] }
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
        file: 'upkeep/still-ending.ts',
        find: 'if (!loop().isEnding(uid, node)) return false',
        replace: 'return true'
      },
      {
        file: 'write/removal.ts',
        find: 'answer === true && isEnding(uid, node)',
        replace: 'answer === true'
      }
    ],
    found: { expected: /was taken out of .*, but .* stays/, only: ['observed', 'API server: slow'] }
  },
  {
    name: '4: an entry keeps its address when that is another pod’s',
    edits: [
      {
        file: 'round/lingering.ts',
        find: 'ips.some(ip => world.ownersOf(ip).some(owner => owner.uid !== uid))',
        replace: 'false'
      },
      { file: 'round/lingering.ts', find: 'until: now + lingerMs', replace: 'until: now + 60_000' }
    ],
    found: { expected: /sends nothing to same-address/, only: ['barrier', 'API server: slow'] }
  },
  {
    name: '5: what was planned is not written',
    edits: [
      {
        file: 'round/loop.ts',
        find: 'for (const change of wanted.changes) writer.submit(change)',
        replace: ''
      }
    ],
    found: { expected: /it does not end well/, only: ['barrier', 'API server: slow'] }
  },
  {
    name: '5: a node whose pod went while no agent ran is left',
    edits: [{ file: 'upkeep/ghosts.ts', find: 'due = mayRepair()', replace: 'due = !mayRepair()' }],
    found: {
      file: 'test/feature/ghosts.test.ts',
      title: 'repaired: it is taken out in one write for the holder, and the others stay'
    }
  },
  {
    name: '6: takes the word of a watch that is behind',
    edits: ANSWERS_BY_AN_OLD_WATCH,
    found: {
      expected: /ends, and was told that it stays/,
      only: ['barrier', 'API server: silent watches', 'before the deletion']
    }
  },
  {
    name: '7: writes a list of nodes that was read before its questions to Kubernetes',
    edits: [
      {
        file: 'write/removal.ts',
        find: 'const [answers] = await Promise.all([ask(',
        replace:
          'const early = await read(tools, target); await tools.clock.sleep(400); const [answers] = await Promise.all([ask('
      },
      {
        file: 'write/removal.ts',
        find: 'const object = await read(tools, target)\n    if (tools',
        replace: 'const object = early\n    if (tools'
      }
    ],
    found: {
      file: 'test/unit/write/writer.test.ts',
      title: 'may set a weight or rotate a key while Kubernetes is asked: both stay'
    }
  },
  {
    name: 'leak: entries of pods that are gone are kept for ever',
    edits: [{ file: 'round/lingering.ts', find: 'now < until &&', replace: 'true &&' }],
    found: { expected: /barrier entries are left/, only: ['barrier', 'API server: slow'] }
  },
  {
    name: 'leak: connections outlive the agent',
    edits: [{ file: 'start/start-sources.ts', find: '  sources.hangUp()\n', replace: '' }],
    found: {
      expected: /connections of agents that are closed are left/,
      only: ['observed', 'API server: slow']
    }
  },
  {
    name: 'leak: timers outlive the agent',
    edits: [
      {
        file: 'round/schedule.ts',
        find: 'stopped = true\n      alarm.stop()',
        replace: 'stopped = true\n      clock.alarm(clock.now() + 60_000, () => {})'
      }
    ],
    found: { expected: /timers of agents that are closed are left/, only: ['observed', 'API server: slow'] }
  },
  {
    name: '1: takes an address that leads to several gateways for one',
    edits: [
      { file: 'barrier/identity.ts', find: 'isSeveral = true', replace: 'void 0' },
      {
        file: 'barrier/barrier.ts',
        find: 'if (twin && (known.identity.isOpen() || known.identity.doubt() === ""))'.replaceAll('"', "'"),
        replace: 'if (Date.now() < 0)'
      },
      { file: 'barrier/identity.ts', find: 'let looks = byHand ? LOOKS : 0', replace: 'let looks = 0' }
    ],
    found: {
      expected: /was answered by the barrier of some gateways only/,
      only: ['barrier', 'discovery, barrier', 'gateway: second behind one address']
    }
  },
  {
    name: '6: takes the first word of the API server for its last',
    edits: [{ file: 'hold/hooks.ts', find: 'if (rest <= 0) return', replace: 'if (rest < Infinity) return' }],
    found: {
      expected: /ends, and was told that it stays/,
      only: ['barrier', 'kubelet: ends pods by itself', 'after the ack']
    }
  },
  {
    name: '6: a process that was away answers by what it knew before',
    edits: ANSWERS_BY_AN_OLD_WATCH,
    found: {
      expected: /ends, and was told that it stays/,
      only: ['barrier', 'agent: paused', 'before the deletion']
    }
  },
  {
    name: 'P1: believes an address that a host shares with its pods',
    edits: [
      {
        file: 'hook/identify.ts',
        find: 'if (candidates.some(pod => pod.hostNetwork)) {',
        replace: 'if (candidates.length === 0) {'
      },
      {
        file: 'hook/prestop.ts',
        find: "if (answer.result === 'not-terminating' && !identity.named)",
        replace: 'if (Date.now() < 0)'
      }
    ],
    found: {
      file: 'test/feature/hooks.test.ts',
      title:
        'a pod whose packets come from its host is not answered for the one pod that lives on that address'
    }
  },
  {
    name: 'P5: what was taken out at a fixed address is not put back',
    edits: [
      {
        file: 'start/start-sources.ts',
        find: 'taken: one => upkeep.taken(one),',
        replace: 'taken: () => {},'
      }
    ],
    found: {
      file: 'test/feature/fixed-addresses.test.ts',
      title: 'an upstream of three nodes has three nodes after all were rolled, with their weights'
    }
  },
  {
    name: 'P6: a gateway that vanished is not asked any more',
    edits: [{ file: 'facts/gateway-store.ts', find: 'if (!pod.ended &&', replace: 'if (pod.ended &&' }],
    found: { file: 'test/feature/complete.test.ts', title: 'and that serves on is asked as before' }
  },
  {
    name: 'P7: a hook that was answered is no witness of what shows later',
    edits: [
      {
        file: 'proof/observe.ts',
        find: 'const firstHookAt = round.hooks.witnessOf(pod, round.now)',
        replace: 'const firstHookAt = undefined'
      }
    ],
    found: {
      file: 'test/feature/hooks.test.ts',
      title: 'the status of a kubelet that comes after the answer still begins the drain'
    }
  },
  {
    name: 'P7: a drain that is undone leaves its hooks with what was known of them',
    edits: [{ file: 'round/loop.ts', find: 'hooks.askAgain(uid)', replace: 'void 0' }],
    found: {
      file: 'test/feature/hooks.test.ts',
      title: 'a hook that was believed is asked about anew when its drain is undone'
    }
  },
  {
    name: 'P7: a call that is repeated begins the grace anew',
    edits: [
      {
        file: 'drain/step.ts',
        find: 'Math.min(at, firstHookAt ?? at)',
        replace: 'Math.max(at, (firstHookAt ?? at) - Infinity)'
      }
    ],
    found: {
      file: 'test/feature/hooks.test.ts',
      title: 'that is called again and again while nobody can say it'
    }
  },
  {
    name: 'P6: asks once at a time at an address by hand',
    edits: [
      {
        file: 'barrier/gateway-state.ts',
        find: '? [read(), read()] : [read()]',
        replace: '? [read()] : [read()]'
      }
    ],
    found: {
      file: 'test/unit/barrier/gateway-state.test.ts',
      title: 'asks twice at once at an address by hand'
    }
  },
  {
    name: 'P10: a process that was away renews what it knew',
    edits: [
      {
        file: 'barrier/barrier.ts',
        find: 'const mayPut = () => desiredBy >= knowledge.resumedAt()',
        replace: 'const mayPut = () => true'
      }
    ],
    found: {
      file: 'test/unit/barrier/barrier.test.ts',
      title: 'renews nothing after an absence until entries were desired by what is known since'
    }
  },
  {
    name: 'P12: entries that a gateway lacks are not put again',
    edits: [
      {
        file: 'barrier/entry-table.ts',
        find: 'for (const { uid } of missing) stored.delete(uid)',
        replace: ''
      }
    ],
    found: {
      file: 'test/unit/barrier/barrier.test.ts',
      title: 'puts again at once what the state of the gateway does not show any more'
    }
  },
  {
    name: 'W2: the silent are left out',
    edits: [
      { file: 'barrier/seal.ts', find: 'if (!complete) return', replace: 'if (said < 0) return' },
      {
        file: 'barrier/barrier-reading.ts',
        find: 'const tag = sealIf?.[i]',
        replace: 'const tag = undefined'
      }
    ],
    found: { file: 'test/feature/words.test.ts', title: 'a frozen worker has not agreed' }
  },
  {
    name: 'W4: seals though a worker has nothing else left',
    edits: [
      { file: 'barrier/seal.ts', find: 'if (sole.length > 0) return', replace: 'if (said < 0) return' },
      {
        file: 'barrier/barrier-reading.ts',
        find: 'const tag = sealIf?.[i]',
        replace: 'const tag = undefined'
      }
    ],
    found: {
      file: 'test/feature/grades.test.ts',
      title:
        'the only node, added after the last listing: it is not sealed because an old listing does not show it'
    }
  },
  {
    name: 'W4: does not ask whether one of the others serves',
    edits: [{ file: 'barrier/seal.ts', find: '!nodes.some(serves)', replace: 'nodes.length === 0' }],
    found: { file: 'test/feature/words.test.ts', title: 'what is left does not serve' }
  },
  {
    name: 'P11: what could only be written whole is written at once',
    edits: [{ file: 'plan/policies.ts', find: '  wholeWrite,\n', replace: '' }],
    found: {
      file: 'test/unit/plan/whole-write.test.ts',
      title:
        'is left alone once every gateway has sealed it, and written when the pod is gone, or at its deadline'
    }
  },
  {
    name: 'P22: what Kubernetes lists for the Service is put back with each write',
    edits: [
      {
        file: 'start/start-sources.ts',
        find: "import { watchAbsence } from '../upkeep/absence.ts'",
        replace:
          "import { watchAbsence } from '../upkeep/absence.ts'; import { expectedNodes } from '../upkeep/expected.ts'; import { nodeOf } from '../apisix/nodes.ts'"
      },
      {
        file: 'start/start-sources.ts',
        find: 'wishes: (target, found) => upkeep.wishes(target, found),',
        replace:
          'wishes: (target, found = []) => ({ edits: [...upkeep.wishes(target, found).edits, ...found.map(one => ({ holder: one.key, remove: [], put: expectedNodes(cluster, one, clock.now()).map(key => nodeOf(key, one.nodes[0], one.form)) }))] }),'
      }
    ],
    found: { expected: /was listed in .*, and its owner never had/, only: ['observed', 'API server: slow'] }
  },
  {
    name: 'the owner’s time: it is given none',
    edits: [
      { file: 'plan/owners-time.ts', find: 'if (given === 0) return', replace: 'if (given >= 0) return' }
    ],
    found: {
      file: 'test/feature/owners.test.ts',
      title: 'without the plugin the owner goes first too, and where it is alive the agent writes nothing'
    }
  },
  {
    name: 'a clock that was set: the time that a gateway tells is taken as it is',
    edits: [
      {
        file: 'barrier/gateway-clock.ts',
        find: ': Math.min(receivedAt, Math.max(askedAt, told - (least + most) / 2))',
        replace: ': told'
      }
    ],
    found: {
      file: 'test/unit/barrier/gateway-clock.test.ts',
      title: 'never leaves the call that it belongs to'
    }
  }
]
