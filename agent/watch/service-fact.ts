import type { ServiceFact } from '../drain/facts.ts'
import { annotationsOf } from './pod-fact.ts'
import { fieldsOf, listOf, portOf, textOf } from './read.ts'

/** A Service, shrunk. Total: `undefined` only where it has no identity. */
export function toServiceFact(object: unknown): ServiceFact | undefined {
  const { metadata, spec } = fieldsOf(object)
  const meta = fieldsOf(metadata)
  const uid = textOf(meta['uid'])
  const name = textOf(meta['name'])
  const namespace = textOf(meta['namespace'])
  if (uid === undefined || name === undefined || namespace === undefined) return undefined
  const ports = listOf(fieldsOf(spec)['ports']).flatMap(entry => {
    const { name: portName, port: number } = fieldsOf(entry)
    const port = portOf(number)
    return port === undefined ? [] : [{ name: textOf(portName) ?? '', port }]
  })
  return { uid, namespace, name, ports, annotations: annotationsOf(meta['annotations']) }
}
