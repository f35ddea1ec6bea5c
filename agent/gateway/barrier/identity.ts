import type { Millis } from '../../rules/drain/facts.ts'

/** Whether a single gateway answers at one address. */
export interface Identity {
  /** An operator configured its address. */
  readonly isByHand: boolean
  /**
   * Takes an answer. `fit` is left out if the answer does not report it.
   *
   * @param fresh the answer came on a new connection
   */
  note(
    answer: { readonly instance: string; readonly fit?: boolean },
    askedAt: Millis,
    receivedAt: Millis,
    fresh: boolean
  ): void
  /** A request got no answer, so the next answer may come from another gateway. */
  unanswered(): void
  /** The instance that answered last; `undefined` before the first answer. */
  instance(): string | undefined
  /** More than one gateway answers at the address. Once true, it stays true. */
  isSeveral(): boolean
  /** Whether the gateway must answer a few more times before its reports count. */
  isOpen(): boolean
  /** Why no report counts; empty once the address is known to lead to one gateway. */
  doubt(): string
}

interface InstanceSeen {
  /** When the instance first answered that it is fit. */
  readonly fitAt: Millis
  /** When another instance first answered a request that was sent later than `fitAt`. */
  otherAt: Millis | undefined
}

/**
 * An address from an operator counts as one gateway after this many fit answers, each on its own connection. An answer that is not fit
 * does not count, because it cannot show a second instance. A call without an answer starts the count again.
 */
const LOOKS = 16
/** How many instances are remembered, because a gateway that crashes all day has many. */
const MOST = 16

/**
 * After a restart, instance B answers instead of A, and A never answers again. If A answers after B, the address leads to several
 * gateways: a load balancer, a Service, two gateways on one host. This result is final, because nothing shows which gateway answers.
 *
 * Answers count in the order of their requests: a slow answer shows an earlier instance, not the present one. Only a fit answer
 * shows that A is back. While nginx replaces its binary (USR2), two instances answer, and both report that they are not fit.
 *
 * @param byHand the address comes from an operator; the address of a pod always counts as one gateway
 */
export function createIdentity(byHand: boolean): Identity {
  const seen = new Map<string, InstanceSeen>()
  let last: string | undefined
  let looks = byHand ? LOOKS : 0
  let isSeveral = false

  return {
    isByHand: byHand,
    note({ instance, fit = false }, askedAt, receivedAt, fresh) {
      last = instance
      for (const [other, { fitAt, otherAt }] of seen)
        if (other !== instance && otherAt === undefined && askedAt >= fitAt)
          seen.set(other, { fitAt, otherAt: receivedAt })
      if (!fit) return
      if (fresh) looks -= 1
      const known = seen.get(instance)
      if (known === undefined) seen.set(instance, { fitAt: receivedAt, otherAt: undefined })
      else if (known.otherAt !== undefined && askedAt >= known.otherAt) isSeveral = true
      const [oldest] = seen.keys()
      if (seen.size > MOST && oldest !== undefined) seen.delete(oldest)
    },
    unanswered() {
      if (byHand) looks = LOOKS
    },
    instance: () => last,
    isSeveral: () => isSeveral,
    isOpen: () => looks > 0 && !isSeveral,
    doubt() {
      if (isSeveral)
        return 'several gateways answer at its address, which is a load balancer or a Service: list every gateway at an address of its own'
      return looks > 0 ? 'whether one gateway answers at its address is not known yet' : ''
    }
  }
}

/** The doubt if the same instance answers under two names. Both names lead to one gateway, so perhaps another gateway is never asked. */
export const twinDoubt = (other: string): string =>
  `the gateway that answers is ${other} as well: list every gateway once, at an address of its own`
