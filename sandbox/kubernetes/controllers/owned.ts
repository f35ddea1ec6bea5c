import type { KubeObject, OwnerReference, Pod } from '../objects.ts'

export const controllerOf = (object: KubeObject): OwnerReference | undefined =>
  object.metadata.ownerReferences?.find(owner => owner.controller === true)

export const ownedBy = (owner: KubeObject) => (object: KubeObject) =>
  controllerOf(object)?.uid === owner.metadata.uid

export const referenceTo = (owner: KubeObject): OwnerReference => ({
  apiVersion: owner.apiVersion ?? 'v1',
  kind: owner.kind ?? '',
  name: owner.metadata.name,
  uid: owner.metadata.uid,
  controller: true
})

/** "shop/web": the key of a work queue. */
export const keyOf = ({ metadata }: KubeObject): string => `${metadata.namespace ?? ''}/${metadata.name}`

export const splitKey = (key: string): readonly [string, string] => {
  const slash = key.indexOf('/')
  return [key.slice(0, slash), key.slice(slash + 1)]
}

/** Whether the pod counts as a replica: it is not ending, and has not ended. */
export const isActive = ({ metadata, status }: Pod): boolean =>
  metadata.deletionTimestamp === undefined && status.phase !== 'Succeeded' && status.phase !== 'Failed'

export const isReady = ({ status }: Pod): boolean =>
  status.conditions?.find(({ type }) => type === 'Ready')?.status === 'True'
