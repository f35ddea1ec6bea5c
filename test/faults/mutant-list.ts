import type { NamedEdit } from './replace-by-name.ts'

/** A change of the plugin, in `plugin-config/apisix/drain/`. */
export interface LuaEdit {
  readonly file: string
  /** A text that the file has once. */
  readonly from: string
  readonly to: string
}

/** An agent or a plugin that is broken in one place, and the failure that must follow. */
export interface Mutant {
  readonly name: string
  /** Each file is a path from `agent/`. */
  readonly edits?: readonly NamedEdit[]
  readonly lua?: readonly LuaEdit[]
  readonly found: FoundByRuns | FoundByTest
}

/** How random runs find the mutant. */
export interface FoundByRuns {
  /** The message that the suite must report. */
  readonly expected: RegExp
  /** The only faults, modes and moments that are drawn, so that a few runs are enough. */
  readonly only: readonly string[]
}

/** A test that finds the mutant. Random runs find such a mutant never, or once in thousands of runs. */
export interface FoundByTest {
  readonly file: string
  readonly title: string
}

export const MUTANTS: readonly Mutant[] = [
  {
    name: '1: answers grade barrier with no entry anywhere',
    edits: [
      {
        file: 'round/entries/desired.ts',
        name: 'createDesired.renew.entry',
        replace: 'void desiredEntry(drain, memories.of(drain.uid), context)'
      },
      { file: 'round/entries/lingering.ts', name: 'createLingering.entries', replace: '[]' },
      { file: 'round/replies.ts', name: 'unsealedSince', replace: 'undefined' },
      {
        file: 'rules/proof/gateway-proof.ts',
        name: 'assess',
        replace: `({ report: { name, grade: 'barrier', at: since, why: '' }, sealed: true, waitsUntil: undefined })`
      }
    ],
    found: {
      expected: /requests reached .* after an ack of grade barrier/,
      only: ['barrier', 'Admin API: hangs', 'before the deletion']
    }
  },
  {
    name: '1: a gateway that said busy is released when its plugin calls itself unfit',
    edits: [
      {
        file: 'rules/proof/gateway-proof.ts',
        name: 'isIdle',
        replace: `barrier.entry === 'sealed' && barrier.readAfterSeal && barrier.inflight.requests === 0`
      }
    ],
    found: {
      file: 'test/unit/rules/proof/proof.test.ts',
      title: 'every known gateway is fit, sealed, and idle after the seal'
    }
  },
  {
    name: 'leak: what a worker had in flight when it crashed is counted for ever',
    lua: [
      {
        file: 'workers.lua',
        from: 'host.alive(worker.pid, start) and living or dead',
        to: 'living'
      }
    ],
    found: {
      expected: /requests? are counted that are over/,
      only: ['barrier', 'gateway: one worker killed', 'while the hook is held']
    }
  },
  {
    name: '1: entries end by the wall clock of their gateway',
    lua: [{ file: 'entry.lua', from: 'require("apisix.drain.host").now', to: 'ngx.now' }],
    found: {
      expected: /a clock that was set made/,
      only: ['barrier', 'gateway: clock jumps ahead', 'gateway: clock jumps back', 'while the hook is held']
    }
  },
  {
    name: '2: answers when the grace is over, and the second net is late too',
    edits: [
      {
        file: 'round/replies.ts',
        name: 'createReplies.now.said',
        replace: `((said, until) => (said.kind === 'wait' || now < until ? { kind: 'wait', until } : said))(answer(hook, drain, look.seen, now, settings(), undefined), (drain?.deadline ?? now) + 2000)`
      },
      {
        file: 'hook/prestop.ts',
        name: 'holdInTime.graceEnds',
        replace:
          'endOfGrace(pod, hook.receivedAt, holds.serverBehindMs()) + reserveOf(pod, { reserveMs }) / 2 + 5000'
      }
    ],
    found: { expected: /was answered \d+ ms after its deadline/, only: ['barrier', 'Admin API: hangs'] }
  },
  {
    name: '3: takes out the last node',
    edits: [
      { file: 'rules/plan/turn.ts', name: 'isServed', replace: 'true' },
      { file: 'gateway/write/edit.ts', name: 'reconcile.isLast', replace: 'false' },
      {
        file: 'gateway/write/removal.ts',
        name: 'attempt.edits',
        replace:
          'withWishes(drained, tools.wishes(target, found), found).map(edit => ({ ...edit, mayEmpty: true }))'
      }
    ],
    // The fault comes late, after the ack, so that the agent acts before the replacement arrives.
    found: { expected: /was emptied of/, only: ['observed', 'Admin API: 401', 'after the ack'] }
  },
  {
    name: '3: takes out a pod that stays',
    edits: [
      {
        file: 'rules/plan/plan.ts',
        name: 'changeOf.nodes',
        replace: 'holder.nodes.slice(1).map(node => ({ key: node.key, uid: matches[0].drain.uid }))'
      },
      { file: 'upkeep/still-ending.ts', name: 'createStillEnding', replace: 'async () => true' },
      { file: 'gateway/write/removal.ts', name: 'dropWhatStays', replace: '[]' }
    ],
    found: { expected: /was taken out of .*, but .* stays/, only: ['observed', 'API server: slow'] }
  },
  {
    name: '4: an entry keeps its address when that is another pod’s',
    edits: [
      { file: 'round/entries/lingering.ts', name: 'left', replace: 'nodes' },
      { file: 'round/entries/lingering.ts', name: 'createLingering.add.until', replace: 'now + 60_000' }
    ],
    found: { expected: /sends nothing to same-address/, only: ['barrier', 'API server: slow'] }
  },
  {
    name: '5: what was planned is not written',
    edits: [{ file: 'gateway/write/writer.ts', name: 'createWriter.submit', replace: '{}' }],
    found: { expected: /it does not end well/, only: ['barrier', 'API server: slow'] }
  },
  {
    name: '7: writes a list of nodes that was read before its questions to Kubernetes',
    edits: [
      {
        file: 'gateway/write/removal.ts',
        name: 'askThenRead',
        replace:
          '{ const object = await read(tools, target); await tools.clock.sleep(400); const [answers] = await Promise.all([ask(removal, tools.stillEnding), tools.prepare(target)]); return { answers, object } }'
      }
    ],
    found: {
      file: 'test/unit/gateway/write/writer.test.ts',
      title: 'may set a weight or rotate a key while Kubernetes is read: both stay'
    }
  },
  {
    name: '4: takes the pod at a reused address for a successor of an inherited entry',
    edits: [{ file: 'round/entries/predecessor.ts', name: 'predecessorOf.ranThen', replace: 'true' }],
    found: {
      file: 'test/feature/successors.test.ts',
      title:
        'an agent that begins leaves an entry alone if a pod of another workload has the address of its successor'
    }
  },
  {
    name: '3: takes all pods of a workload for successors of each other',
    edits: [
      {
        file: 'rules/drain/workload.ts',
        name: 'roleOf',
        replace: 'workload === undefined ? undefined : `${namespace} ${workload}`'
      }
    ],
    found: { expected: /alone were answered by .*, of another role/, only: ['barrier'] }
  },
  {
    name: '3: names no successor while the last one ends',
    edits: [
      { file: 'round/entries/succession.ts', name: 'createSuccession.remaining', replace: 'NO_SUCCESSORS' }
    ],
    found: {
      file: 'test/feature/successors.test.ts',
      title: 'the only successor ends before the next pod is Ready: it serves until then'
    }
  },
  {
    name: 'leak: entries of pods that are gone are kept for ever',
    edits: [{ file: 'round/entries/lingering.ts', name: 'createLingering.add.until', replace: 'Infinity' }],
    found: { expected: /barrier entries are left/, only: ['barrier', 'API server: slow'] }
  },
  {
    name: 'leak: connections outlive the agent',
    edits: [{ file: 'start/start-sources.ts', name: 'startSources.hangUp', replace: '{}' }],
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
        name: 'createSchedule.stop',
        replace: '{ stopped = true; clock.alarm(clock.now() + 60_000, () => {}) }'
      }
    ],
    found: { expected: /timers of agents that are closed are left/, only: ['observed', 'API server: slow'] }
  },
  {
    name: '1: takes an address that leads to several gateways for one',
    edits: [
      {
        file: 'gateway/barrier/identity.ts',
        name: 'createIdentity.note',
        replace: '{ last = instance; if (fit && fresh) looks -= 1 }'
      },
      { file: 'gateway/barrier/identity.ts', name: 'createIdentity.looks', replace: '0' },
      { file: 'gateway/barrier/barrier.ts', name: 'createBarrierKeeper.doubt.twin', replace: 'undefined' }
    ],
    found: {
      expected: /was answered by the barrier of some gateways only/,
      only: ['barrier', 'discovery, barrier', 'gateway: second behind one address']
    }
  },
  {
    name: '6: a hook is no witness before a watch shows the end',
    edits: [{ file: 'round/gather/observe.ts', name: 'observeOne.seen.calls', replace: '[]' }],
    found: {
      expected: /ends, and was told that it stays/,
      only: ['barrier', 'kubelet: ends pods by itself', 'after the ack']
    }
  },
  {
    name: '6: anybody who names a pod is a witness',
    edits: [{ file: 'hook/prestop.ts', name: 'answerHook.isOwn', replace: 'true' }],
    found: {
      file: 'test/feature/restarts.test.ts',
      title:
        'cannot be claimed by a GET, which others can cause, or from an address that is not the pod’s alone'
    }
  },
  {
    name: '6: a container that is Ready counts as back',
    edits: [{ file: 'rules/drain/eligible.ts', name: 'backAgain.isAnother', replace: 'true' }],
    found: {
      file: 'test/feature/restarts.test.ts',
      title:
        'of an app that hangs: its hook takes no longer than its own sleep, and the seal stands until it is back'
    }
  },
  {
    name: '8: believes slices of other namespaces',
    edits: [{ file: 'kubernetes/facts/slice-store.ts', name: 'podKey', replace: '`${uid}`' }],
    found: {
      expected: /was refused at once/,
      only: ['barrier', 'EndpointSlices: forged', 'before the deletion']
    }
  },
  {
    name: '8: seals a pod by force whose grace is too short to hold its hook',
    edits: [{ file: 'round/entries/seal-decision.ts', name: 'desiredEntry.isShort', replace: 'false' }],
    found: {
      expected: /nothing was broken, and requests failed/,
      only: ['barrier', 'pods: short grace']
    }
  },
  {
    name: '8: takes a backup for a choice of the same standing',
    lua: [
      {
        file: 'offer.lua',
        from: 'not top or (node.weight ~= 0 and (node.priority or 0) >= top)',
        to: 'true'
      }
    ],
    found: {
      expected: /requests were answered by the backup/,
      only: ['barrier', 'standalone, barrier', 'owner: lists a backup']
    }
  },
  {
    name: 'P1: believes an address that a host shares with its pods',
    edits: [{ file: 'hook/identify.ts', name: 'identify.fromAddress.isOfHost', replace: 'false' }],
    found: {
      file: 'test/feature/hooks.test.ts',
      title: 'a pod whose packets come from its host is not mistaken for the one pod with that address'
    }
  },
  {
    name: 'P5: a node at a fixed address is taken out, and nobody adds it again',
    edits: [{ file: 'rules/drain/workload.ts', name: 'hasFixedAddress', replace: 'false' }],
    found: {
      file: 'test/feature/fixed-addresses.test.ts',
      title: 'without the plugin the upstream is not written either'
    }
  },
  {
    name: 'P6: a gateway that vanished is not asked any more',
    edits: [
      {
        file: 'kubernetes/facts/gateway-store.ts',
        name: 'createGatewayStore.sink.gone',
        replace: 'pods.delete(uid) && refresh()'
      }
    ],
    found: { file: 'test/feature/complete.test.ts', title: 'and that still serves is polled as before' }
  },
  {
    name: 'P6: asks once at a time at an address by hand',
    edits: [{ file: 'gateway/barrier/identity.ts', name: 'createIdentity.isByHand', replace: 'false' }],
    found: {
      file: 'test/unit/gateway/barrier/gateway-state.test.ts',
      title: 'reads an address by hand twice in a row'
    }
  },
  {
    name: 'P10: a process that was away renews what it knew',
    edits: [{ file: 'gateway/barrier/barrier.ts', name: 'createBarrierKeeper.mayChange', replace: 'true' }],
    found: {
      file: 'test/unit/gateway/barrier/barrier.test.ts',
      title: 'renews and removes nothing after an absence until a round with current data desires the entries'
    }
  },
  {
    name: 'A4: entries that a gateway lacks are not put again',
    edits: [{ file: 'gateway/barrier/entry-table.ts', name: 'isHeld', replace: 'true' }],
    found: {
      file: 'test/unit/gateway/barrier/barrier.test.ts',
      title: 'puts an entry again at once when the gateway’s state no longer shows it'
    }
  },
  {
    name: 'A5: a lost successor leaves sealed entries with their renewal',
    edits: [{ file: 'gateway/barrier/desired-entry.ts', name: 'lostSuccessors', replace: '[]' }],
    found: {
      expected: /requests for web reached the stranger/,
      only: ['stranger: at a successor', 'API server: slow', 'before the deletion']
    }
  },
  {
    name: 'A2: an agent that cannot see drops the entries of gone pods',
    edits: [
      {
        file: 'round/ownership.ts',
        name: 'createAddressOwnership.ofDrain',
        replace: `isLive || isHeld ? 'put' : 'drop'`
      }
    ],
    found: {
      file: 'test/unit/round/ownership.test.ts',
      title: 'is no reason to put or to remove an entry while the watch is down, unless a hook is held'
    }
  },
  {
    name: 'A2: an agent that lags puts again what another one has removed',
    edits: [{ file: 'kubernetes/facts/cluster.ts', name: 'startCluster.podsAsOf', replace: 'undefined' }],
    found: {
      file: 'test/feature/two-agents.test.ts',
      title: 'it does not put the entry again whose address is another pod’s'
    }
  },
  {
    name: 'W2: the silent are left out',
    edits: [
      {
        file: 'round/entries/seal-decision.ts',
        name: 'agreement.judged',
        replace: `reading?.word ? judge({ ...reading.word, complete: true }, serves) : { why: 'not asked' }`
      },
      { file: 'gateway/barrier/desired-entry.ts', name: 'entriesOf.tag', replace: 'undefined' }
    ],
    found: { file: 'test/feature/words.test.ts', title: 'a frozen worker has not agreed' }
  },
  {
    name: 'W4: seals though a worker has nothing else left',
    edits: [
      {
        file: 'round/entries/seal-decision.ts',
        name: 'agreement.judged',
        replace: `reading?.word ? judge({ ...reading.word, sole: [] }, serves) : { why: 'not asked' }`
      },
      { file: 'gateway/barrier/desired-entry.ts', name: 'entriesOf.tag', replace: 'undefined' }
    ],
    found: {
      file: 'test/feature/grades.test.ts',
      title: 'the only node, added after the last listing: an old listing without it is no reason to seal it'
    }
  },
  {
    name: 'W4: does not ask whether one of the others serves',
    edits: [
      {
        file: 'rules/proof/seal.ts',
        name: 'judge.bad',
        replace: 'others.find(({ nodes, more }) => more === 0 && nodes.length === 0)'
      }
    ],
    found: {
      file: 'test/feature/words.test.ts',
      title: 'no other node serves: the pod is kept until one of the others is Ready'
    }
  },
  {
    name: 'S4: a holder of another namespace holds a pod until its deadline',
    edits: [{ file: 'rules/plan/holder.ts', name: 'isOfOtherNamespace', replace: 'false' }],
    found: {
      file: 'test/unit/round/entries/let-go.test.ts',
      title: 'are let go where they list no other node, and no other place is'
    }
  },
  {
    name: 'P11: a list is written at once, while every gateway has a barrier',
    edits: [{ file: 'rules/plan/turn.ts', name: 'isWrittenWhole', replace: 'false' }],
    found: {
      file: 'test/feature/owners.test.ts',
      title: 'a list without an ingress controller is written when the pod is gone, and a map at once'
    }
  },
  {
    name: 'P22: what Kubernetes lists for the Service is put back with each write',
    edits: [
      {
        file: 'start/start-sources.ts',
        name: 'startSources.writer.wishes',
        replace:
          '[...(sync?.wishes(target, found) ?? []), ...found.map(one => ({ holder: one.key, remove: [], put: expectedNodes(cluster, one, clock.now()).map(key => nodeOf(key, one.nodes[0], one.form)) }))]',
        imports: [
          "import { expectedNodes } from '../upkeep/expected.ts'",
          "import { nodeOf } from '../gateway/apisix/nodes.ts'"
        ]
      }
    ],
    found: { expected: /was listed in .*, and its owner never had/, only: ['observed', 'API server: slow'] }
  },
  {
    name: 'the table: an ingress controller owns nothing',
    edits: [{ file: 'rules/plan/turn.ts', name: 'turnOf.owned', replace: 'false' }],
    found: {
      file: 'test/feature/owners.test.ts',
      title: 'with the plugin only the owner writes'
    }
  },
  {
    name: 'a clock that was set: the time that a gateway tells is taken as it is',
    edits: [
      {
        file: 'gateway/barrier/gateway-clock.ts',
        name: 'createGatewayClock.onOurs',
        replace: 'spans.length === 0 ? receivedAt : told'
      }
    ],
    found: {
      file: 'test/unit/gateway/barrier/gateway-clock.test.ts',
      title: 'never dates an answer outside of its own call'
    }
  },
  {
    name: 'plugin: a request connects without a look at the deny-list',
    lua: [{ file: 'pick.lua', from: '    local level = level_of(set, addr)', to: '    local level' }],
    found: { file: 'test/unit/plugin/uploads.test.ts', title: 'move away from a node that is ' }
  },
  {
    name: 'plugin: a request that is over stays counted',
    lua: [{ file: 'inflight.lua', from: '        add(self, counter, -1)\n', to: '' }],
    found: {
      file: 'test/unit/plugin/api.test.ts',
      title: 'avoids a denied node on retries too'
    }
  },
  {
    name: 'plugin: a worker keeps an entry that has expired',
    lua: [
      {
        file: 'copy.lua',
        from: '    if not till or till <= now then\n        if entry then',
        to: '    if not till then\n        if entry then'
      }
    ],
    found: { file: 'test/unit/plugin/api.test.ts', title: 'lets an entry expire' }
  },
  {
    name: 'plugin: an upgraded connection is an ordinary request',
    lua: [{ file: 'kinds.lua', from: 'ngx.status == 101', to: 'false' }],
    found: {
      file: 'test/unit/plugin/api.test.ts',
      title: 'counts an upgraded connection as long-lived, until it closes'
    }
  },
  {
    name: 'plugin: any token is accepted',
    lua: [
      {
        file: 'settings.lua',
        from: '    return false, "the token is not',
        to: '    return true, "the token is not'
      }
    ],
    found: {
      file: 'test/unit/plugin/api.test.ts',
      title: 'refuses bodies that are not JSON, other paths and methods, long bodies, and a wrong token'
    }
  },
  {
    name: 'plugin: an entry may live for a day',
    lua: [{ file: 'request.lua', from: 'local MAX_TTL   = 3600', to: 'local MAX_TTL   = 86400' }],
    found: {
      file: 'test/unit/plugin/api.test.ts',
      title: 'refuses bad input, storing nothing'
    }
  },
  {
    name: 'plugin: a removal is not remembered',
    lua: [{ file: 'entries.lua', from: '        entry_mod.outdate(self.dict, uid, as_of)\n', to: '' }],
    found: {
      file: 'test/unit/plugin/as-of.test.ts',
      title: 'is no reason to put an entry that was removed as of a later one'
    }
  },
  {
    name: 'plugin: leaves the shortcut of APISIX past the barrier',
    lua: [
      {
        file: 'wrappers.lua',
        from: 'apisix.http_balancer_phase = handle, connect',
        to: 'own.none = handle, connect'
      }
    ],
    found: { file: 'test/unit/plugin/api.test.ts', title: 'keeps off the shortcut of APISIX' }
  },
  {
    name: 'plugin: the word lacks what changed around its entry',
    lua: [{ file: 'affected.lua', from: 'self:touch(place.list, seen)', to: '' }],
    found: {
      file: 'test/unit/plugin/word.test.ts',
      title: 'is after each of many changes that of a worker that has just started'
    }
  },
  {
    name: 'plugin: a gateway is ready before it has the entries',
    lua: [
      {
        file: 'fetch.lua',
        from: '    return false, "fetching the entries that hold from the agent"',
        to: '    return true, "fetching"'
      }
    ],
    found: {
      file: 'test/unit/plugin/api.test.ts',
      title: 'fetches the current entries at its start, and is ready only then'
    }
  },
  {
    name: 'plugin: a long poll waits for all pods',
    lua: [
      {
        file: 'api.lua',
        from: '        if n == 0 then\n            return true\n        end\n    end\n    return false',
        to: '        if n ~= 0 then\n            return false\n        end\n    end\n    return true'
      }
    ],
    found: {
      file: 'test/unit/gateway/barrier/barrier.test.ts',
      title: 'reports at once when one of many requests ends'
    }
  },
  {
    name: 'plugin: a request does not follow the successors of its nodes',
    lua: [{ file: 'offer.lua', from: '    if not next(main) then', to: '    if false then' }],
    found: {
      file: 'test/feature/successors.test.ts',
      title: 'the only successor ends before the next pod is Ready: it serves until then'
    }
  },
  {
    name: 'A1: labels that an operator changes at an end decide who follows',
    edits: [{ file: 'rules/drain/workload.ts', name: 'withLabels', replace: '{ return pod }' }],
    found: {
      file: 'test/unit/rules/plan/successors.test.ts',
      title: 'are never the wrong pods, and none that may take over is missing'
    }
  },
  {
    name: 'A19: plugins that connect by themselves are not looked at',
    edits: [{ file: 'gateway/apisix/holders.ts', name: 'connectorsOf', replace: '{ return [] }' }],
    found: {
      file: 'test/unit/gateway/apisix/holders.test.ts',
      title: 'finds what plugins connect to by themselves, in known fields of known plugins'
    }
  }
]
