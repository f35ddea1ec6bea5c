import { createServiceStore } from '../../agent/kubernetes/facts/service-store.ts'
import type { PodFact, ServiceFact } from '../../agent/rules/drain/facts.ts'
import {
  answersOf,
  elsewhere,
  hiddenPlaces,
  unaskable,
  waysTo,
  type Behind,
  type Found
} from '../../agent/rules/plan/hidden.ts'
import { holder } from './holder.ts'
import { pod } from './pod.ts'
import { serviceFact, sliceOf } from './service.ts'
import { worldOf } from './world.ts'

/** The places that hide the pod `web-1` of the Service `web`, in words, while one place lists these nodes. */
export function hiding(given: {
  nodes?: readonly string[]
  place?: string
  pod?: Partial<PodFact>
  others?: readonly Partial<PodFact>[]
  /** How many ports the pod declares, from 1. */
  declares?: number
  services?: readonly Partial<ServiceFact>[]
  /** The targets of Services of type ExternalName, by `namespace/name`; or how many of them stand for `web`. */
  aliases?: Readonly<Record<string, string>> | number
  /** Slices with other addresses of pods, by pod. */
  slices?: Readonly<Record<string, Readonly<Record<string, string>>>>
  nodePort?: number
  servicesKnown?: boolean
  /** What another agent has asked for. */
  found?: readonly Found[]
  more?: number
}) {
  const {
    nodes = [],
    place = 'upstreams/web',
    others = [],
    declares,
    services = [{}],
    aliases = {},
    slices = {}
  } = given
  const ports = declares && { containerPorts: Array.from({ length: declares }, (_, i) => i + 1) }
  const fact = pod('web-1', { ...given.pod, ...ports })
  const { store, sink } = createServiceStore()
  const targets =
    typeof aliases === 'number'
      ? Array.from({ length: aliases }, (_, i) => [`shop/a${i}`, 'web.shop.svc'] as const)
      : Object.entries(aliases)
  for (const [alias, externalName] of targets) {
    const [namespace, name = ''] = alias.split('/')
    sink.set(serviceFact(name, { uid: alias, namespace: namespace!, externalName }))
  }
  const lists = Object.entries(slices).map(([name, ips]) =>
    sliceOf(
      name,
      Object.entries(ips).map(([name, ip]) => pod(name, { ips: [ip] }))
    )
  )
  const behind: Behind = {
    services: services.map(differs => serviceFact('web', differs)),
    elsewhere: elsewhere(fact, lists),
    aliasesTo: key => store.aliasesTo(key),
    servicesKnown: given.servicesKnown ?? true,
    isNodePort: port => port === given.nodePort
  }
  const web = { ...holder('web', nodes), key: place }
  const ways = waysTo(worldOf([web], [fact, ...others.map((one, i) => pod(`other-${i}`, one))]), fact, behind)
  const answers = [...[...ways.keys()].flatMap(answersOf([web])), ...(given.found ?? [])]
  return [...unaskable(fact, [], ways, behind), ...hiddenPlaces(ways, answers, given.more ?? 0)].map(
    ({ why }) => why
  )
}
