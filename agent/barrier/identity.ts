import type { Millis } from '../drain/facts.ts'

/** Whether what answers at one address is one gateway. */
export interface Identity {
  /** Its address comes from an operator. */
  readonly isByHand: boolean
  /**
   * An answer. `fit` is left out where it does not say.
   *
   * @param fresh it came on a connection of its own
   */
  note(
    answer: { readonly instance: string; readonly fit?: boolean },
    askedAt: Millis,
    receivedAt: Millis,
    fresh: boolean
  ): void
  /** A question had no answer: another gateway may stand there when the next one has. */
  unanswered(): void
  /** Who answered last; `undefined` before the first answer. */
  instance(): string | undefined
  /** More than one gateway answers at the address: for good. */
  isSeveral(): boolean
  /** It has to be asked a few times more before it is believed. */
  isOpen(): boolean
  /** Why nothing that it says counts; empty where nothing speaks against one gateway. */
  doubt(): string
}

interface Seen {
  /** When it was first heard fit. */
  readonly fitAt: Millis
  /** When another one was heard that was asked after that. */
  otherAt: Millis | undefined
}

/**
 * So many fit answers in a row, on connections of their own, before an address that was written by hand is believed to be one gateway. One that is
 * not fit brings no other back, and one that does not answer may be there again a moment later.
 */
const LOOKS = 16
/** So many instances are remembered: a gateway that crashes all day has many. */
const MOST = 16

/**
 * A restart is A, then B, and never A again. Where A answers after B has, the address leads to several gateways: a load balancer, a
 * Service, two gateways on one host. That is never taken back, because their answers cannot be told apart.
 *
 * Answers count in the order in which they were asked for: one that was on its way for long says who was there, not who is. And only a
 * fit one brings A back: while nginx replaces its binary (USR2) two instances answer, and each says that it is not fit.
 *
 * @param byHand the address comes from an operator; that of a pod is its own
 */
export function createIdentity(byHand: boolean): Identity {
  const seen = new Map<string, Seen>()
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

/** The same instance behind two names is one gateway, and whoever the other name was meant for is not asked. */
export const twinDoubt = (other: string): string =>
  `the gateway that answers is ${other} as well: list every gateway once, at an address of its own`
