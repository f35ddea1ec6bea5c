import { randomBytes } from 'node:crypto'
import type { Meta } from './objects.ts'

/** The key of an object in the store: namespace/name. */
export const keyOf = ({ metadata }: { metadata: Partial<Meta> }): string =>
  metadata.namespace === undefined ? `${metadata.name}` : `${metadata.namespace}/${metadata.name}`

/** Freezes the value at every depth. */
export function freeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    for (const inner of Object.values(value)) freeze(inner)
  }
  return value
}

const ALPHABET = 'bcdfghjklmnpqrstvwxz2456789'
/** The random end of a generated name (`generateName`). */
export const nameSuffix = (): string =>
  Array.from(randomBytes(5), byte => ALPHABET[byte % ALPHABET.length]).join('')

/** Restores the fields that a client cannot change by writing the object. */
export function keepSystemFields(given: Partial<Meta>, current: Meta): Meta {
  const { deletionTimestamp: _, deletionGracePeriodSeconds: __, generateName: ___, ...rest } = given
  const { generateName, generation, deletionTimestamp, deletionGracePeriodSeconds } = current
  return {
    ...rest,
    name: current.name,
    ...(current.namespace === undefined ? {} : { namespace: current.namespace }),
    ...(generateName === undefined ? {} : { generateName }),
    uid: current.uid,
    resourceVersion: current.resourceVersion,
    creationTimestamp: current.creationTimestamp,
    ...(generation === undefined ? {} : { generation }),
    ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
    ...(deletionGracePeriodSeconds === undefined ? {} : { deletionGracePeriodSeconds })
  }
}
