import { createIdentity, twinDoubt } from '../../gateway/barrier/gateway-state.ts'
import type { BarrierGateway } from '../../gateway/apisix/barrier-wire.ts'
import type { Config } from '../../config/config.ts'
import { isOtherWire, meaningOf, isDenied } from '../../base/errors.ts'
import type { GatewayFact } from '../../rules/drain/facts.ts'
import { COVER_L4 } from '../../rules/proof/proof.ts'
import { isOver } from '../../rules/drain/eligible.ts'
import {
  fail,
  ok,
  warn,
  type ClusterLists,
  type Check,
  type Finding,
  namesOf,
  wordsOf
} from './cluster-lists.ts'
import type { AdminApi } from '../../gateway/apisix/admin-api.ts'

export interface GatewayCalls {
  list(signal: AbortSignal): Promise<readonly GatewayFact[]>
  /** Resolves if the Control API of that gateway could be read. */
  readControl(host: string, signal: AbortSignal): Promise<unknown>
  readBarrier(host: string, signal: AbortSignal): Promise<BarrierHealth>
}

interface BarrierHealth {
  readonly instance: string
  readonly fit: boolean
  readonly unfit: readonly string[]
  readonly plugin: string
  readonly workers: BarrierGateway['workers']
}

/** The result of one check for one gateway. Gateways with the same outcome are reported together. */
interface Outcome {
  readonly name: 'control-api' | 'barrier'
  readonly level: Finding['level']
  /** The text after the names of the gateways. */
  readonly says: string
  readonly change: string
}

/** Checks that gateways exist, and that what is configured works in each: a gateway that is not Ready or ends is only a warning. */
export function checkGateways(calls: GatewayCalls, { apisix }: Pick<Config, 'apisix'>): Check {
  return async signal => {
    const gateways = await calls.list(signal)
    if (gateways.length === 0) return [noGateway(apisix.gateways)]
    const instances = new Map<string, string>()
    const each = await Promise.all(
      gateways.flatMap(gateway => [
        ...(apisix.control.enabled ? [labelled(gateway, control(gateway, signal))] : []),
        ...(apisix.barrier ? [labelled(gateway, barrier(gateway, instances, signal))] : [])
      ])
    )
    const findings = [
      ok('gateways', `${gateways.length} known: ${namesOf(gateways.map(({ name }) => name))}`),
      gateways.some(gateway => gateway.byHand) &&
        warn(
          'gateways',
          'they are listed by hand: nothing shows that the list is complete',
          'if they are pods, use namespace and selector; else list every gateway that serves, at an address of its own'
        ),
      ...together(each),
      !apisix.barrier &&
        warn(
          'barrier',
          'the plugin is not used (apisix.barrier): evidence is at best observed, and hooks take seconds instead of milliseconds',
          'load the plugin in every gateway and set apisix.barrier: docs/install.md#the-plugin'
        )
    ]
    return findings.filter(finding => finding !== false)
  }

  async function control(gateway: GatewayFact, signal: AbortSignal): Promise<Outcome> {
    const name = 'control-api'
    // With the plugin, the Control API is only shown on the page.
    const level = apisix.barrier ? 'warn' : levelAt(gateway)
    try {
      await calls.readControl(gateway.ip, signal)
      return { name, level: 'ok', says: 'can be observed', change: '' }
    } catch (err) {
      return {
        name,
        level,
        says: `cannot be observed: ${meaningOf(err)}`,
        change:
          'let the Control API listen on the pod address (apisix.enable_control, control.ip) and open it to the agent only'
      }
    }
  }

  /** Reads a gateway's state as often as the agent does before it trusts an address. @param instances the names of gateways, by instance */
  async function asked(gateway: GatewayFact, instances: Map<string, string>, signal: AbortSignal) {
    const identity = createIdentity(gateway.byHand === true)
    let health: BarrierHealth
    let turn = 0
    do {
      health = await calls.readBarrier(gateway.ip, signal)
      identity.note(health, turn, ++turn, true)
    } while (identity.isOpen())
    const twin = instances.get(health.instance)
    instances.set(health.instance, gateway.name)
    return { ...health, doubt: identity.doubt() || (twin === undefined ? '' : twinDoubt(twin)) }
  }

  async function barrier(
    gateway: GatewayFact,
    instances: Map<string, string>,
    signal: AbortSignal
  ): Promise<Outcome> {
    const name = 'barrier'
    const problem = (says: string, change: string): Outcome => ({
      name,
      level: levelAt(gateway),
      says,
      change
    })
    try {
      const { fit, unfit, plugin, doubt, workers } = await asked(gateway, instances, signal)
      if (doubt !== '')
        return problem(doubt, 'correct apisix.gateways: name each gateway once, at its own address')
      const open = workers.find(({ l4 = 'covered' }) => l4 !== 'covered')
      if (open) return problem(`L4 is on and not covered: ${open.l4}`, COVER_L4)
      if (fit) return { name, level: 'ok', says: `fit, plugin ${plugin}`, change: '' }
      return problem(`not fit: ${unfit.join('; ')}`, 'use a plugin version that knows this APISIX')
    } catch (err) {
      if (isOtherWire(err))
        return problem(meaningOf(err), 'upgrade agents and gateways to one release, the agents first')
      return problem(
        `the barrier does not answer: ${meaningOf(err)}`,
        'load the plugin in this gateway (docs/install.md#the-plugin), and give plugin and agent the same token (apisix.barrier)'
      )
    }
  }
}

const levelAt = ({ ready, terminating }: GatewayFact) => (ready && !terminating ? 'fail' : 'warn')

/** Warns of pods that look like APISIX and are no known gateway: requests that come by them are not drained. */
export function checkOthers(survey: Pick<ClusterLists, 'pods'>, list: GatewayCalls['list']): Check {
  return async signal => {
    const [{ apisix }, gateways] = await Promise.all([survey.pods(signal), list(signal)])
    const known = new Set(gateways.flatMap(({ id, ip }) => [id, ip]))
    const others = apisix.filter(
      pod => !isOver(pod) && !known.has(pod.uid) && !pod.ips.some(ip => known.has(ip))
    )
    if (others.length === 0) return [ok('others', 'no other pod looks like APISIX')]
    return [
      warn(
        'others',
        `these look like APISIX and are not in apisix.gateways: ${namesOf(others.map(({ namespace, name }) => `${namespace}/${name}`))}; requests by them still reach a pod after its hook is answered`,
        'if they route to pods with hooks, choose apisix.gateways (namespace, selector) so that it finds them too'
      )
    ]
  }
}

function noGateway(source: Config['apisix']['gateways']): Finding {
  const wanted =
    source.kind === 'pods'
      ? `, in ${source.namespace === undefined ? 'all namespaces' : `namespace ${source.namespace}`} with labels ${source.selector}`
      : ''
  return fail(
    'gateways',
    `no gateway is known${wanted}, so every hook is refused`,
    'correct apisix.gateways: namespace and selector must match the APISIX pods (kubectl get pods -A --show-labels)'
  )
}

const labelled = async ({ name }: GatewayFact, outcome: Promise<Outcome>) => ({
  gateway: name,
  outcome: await outcome
})

function together(each: readonly Awaited<ReturnType<typeof labelled>>[]): Finding[] {
  const alike = Map.groupBy(each, ({ outcome: { name, level, says } }) => `${name} ${level} ${says}`)
  return [...alike.values()].flatMap(same => {
    const [first] = same
    if (!first) return []
    const { name, level, says, change } = first.outcome
    return [{ name, level, what: `${namesOf(same.map(({ gateway }) => gateway))}: ${says}`, change }]
  })
}

const NAME = 'admin-api'

/** Checks that the Admin API answers, accepts the agent's key, and runs in a mode that allows writes. */
export function checkAdmin(admin: Pick<AdminApi, 'standalone'>): Check {
  return async signal => {
    try {
      if ((await admin.standalone(signal)) === undefined)
        return [ok(NAME, 'the Admin API takes our key; APISIX runs with etcd')]
      return [
        warn(
          NAME,
          'API-driven standalone: every gateway holds its own whole document, so it is never written here',
          'load our plugin (apisix.barrier): without it nothing better than evidence observed can be had here'
        )
      ]
    } catch (error) {
      return [fail(NAME, wordsOf(error), isDenied(error) ? OPEN_IT : REACH_IT)]
    }
  }
}

const OPEN_IT =
  '401: give the agent the key that APISIX has: in its chart apisix.admin.credentials.admin, or the Secret of credentials.secretName, or deployment.admin.admin_key of apisix.fullCustomConfig; 403: add the network of the pods to apisix.admin.allow.ipList'
const REACH_IT = 'correct that; apisix.admin.url must be an Admin API of APISIX, which the agent can reach'
