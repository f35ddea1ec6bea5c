import { createIdentity, twinDoubt } from '../barrier/identity.ts'
import type { Config } from '../config/types.ts'
import type { GatewayFact } from '../drain/facts.ts'
import { fail, ok, warn, wordsOf, type Check, type Finding } from './finding.ts'

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
}

/** There are gateways, and each gives the evidence that the configuration asks for. */
export function checkGateways(
  calls: GatewayCalls,
  { apisix, drain }: Pick<Config, 'apisix' | 'drain'>
): Check {
  return async signal => {
    let gateways: readonly GatewayFact[]
    try {
      gateways = await calls.list(signal)
    } catch (err) {
      return [fail('gateways', `the gateways cannot be listed: ${wordsOf(err)}`, 'see kubernetes and rbac')]
    }
    if (gateways.length === 0) {
      return [
        fail(
          'gateways',
          'no gateway is known, so every hook is refused',
          'check apisix.gateways: namespace and selector must match the APISIX pods'
        )
      ]
    }
    const instances = new Map<string, string>()
    const each = await Promise.all(
      gateways.flatMap(gateway => [
        ...(apisix.control.enabled ? [control(gateway, signal)] : []),
        ...(apisix.barrier ? [barrier(gateway, instances, signal)] : [])
      ])
    )
    return [
      ok('gateways', `${gateways.length} known: ${gateways.map(gateway => gateway.name).join(', ')}`),
      ...(gateways.some(gateway => gateway.byHand)
        ? [
            warn(
              'gateways',
              'they are listed by hand: nothing shows that the list is complete',
              'where they are pods use namespace and selector; else list every gateway that serves, at an address of its own'
            )
          ]
        : []),
      ...each
    ]
  }

  async function control(gateway: GatewayFact, signal: AbortSignal): Promise<Finding> {
    try {
      await calls.readControl(gateway.ip, signal)
      return ok('control-api', `${gateway.name} can be observed`)
    } catch (err) {
      const decides = drain.minimumGrade === 'observed' && !apisix.barrier
      return (decides ? fail : warn)(
        'control-api',
        `${gateway.name} cannot be observed: ${wordsOf(err)}`,
        'let the Control API listen on the pod address (apisix.enable_control, control.ip) and open it to the agent only'
      )
    }
  }

  /** Reads its state as often as the agent before it trusts an address. @param instances the gateways that answered, by instance */
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
  ): Promise<Finding> {
    const problem = drain.minimumGrade === 'barrier' ? fail : warn
    try {
      const { fit, unfit, plugin, doubt } = await asked(gateway, instances, signal)
      if (doubt !== '')
        return problem(
          'barrier',
          `${gateway.name}: ${doubt}`,
          'correct apisix.gateways, or hooks rest on the Admin API alone'
        )
      if (fit) return ok('barrier', `${gateway.name} is fit, plugin ${plugin}`)
      return problem(
        'barrier',
        `${gateway.name} is not fit: ${unfit.join('; ')}`,
        'use a plugin version that knows this APISIX'
      )
    } catch (err) {
      return problem(
        'barrier',
        `the barrier of ${gateway.name} does not answer: ${wordsOf(err)}`,
        'load the plugin in this gateway, and give plugin and agent the same token (apisix.barrier)'
      )
    }
  }
}
