import { expect } from 'chai'
import { assert, jsonValue, property } from 'fast-check'
import { withoutManagedFields } from '../../../../agent/kubernetes/transport/managed-fields.ts'

const read = (value: unknown): unknown =>
  JSON.parse(withoutManagedFields(Buffer.from(JSON.stringify(value)))) as unknown

const MANAGED = [
  {
    manager: 'kubelet',
    fieldsV1: { 'f:status': { 'k:{"type":"Ready"}': { '.': {}, 'f:x': [[1], ['\\"]']] } } }
  }
]

describe('without managedFields', () => {
  it('a pod is otherwise unchanged', () => {
    const pod = { metadata: { name: 'web-1', labels: { app: 'wéb' } }, spec: { x: [1, { y: ']' }] } }
    const sent = { ...pod, metadata: { ...pod.metadata, managedFields: MANAGED } }
    expect(read({ type: 'ADDED', object: sent })).to.deep.equal({ type: 'ADDED', object: pod })
  })

  it('every pod of a list is otherwise unchanged', () => {
    const items = ['a', 'b'].map(name => ({ metadata: { name, managedFields: MANAGED }, status: {} }))
    expect(read({ items })).to.deep.equal({
      items: ['a', 'b'].map(name => ({ metadata: { name }, status: {} }))
    })
  })

  it('the same text inside a string stays', () => {
    const value = { a: 1, note: ',"managedFields":[', annotations: { b: '{"a":1,"managedFields":[]}' } }
    expect(read(value)).to.deep.equal(value)
  })

  it('truncated JSON stays unchanged', () => {
    const cut = '{"a":1,"managedFields":[{"b":"]"'
    expect(withoutManagedFields(Buffer.from(cut))).to.equal(cut)
  })

  it('any JSON keeps its other values', () => {
    assert(
      property(jsonValue(), jsonValue(), (before, managed) => {
        const list = Array.isArray(managed) ? managed : [managed]
        expect(read({ before, managedFields: list, after: before })).to.deep.equal(
          JSON.parse(JSON.stringify({ before, after: before }))
        )
      })
    )
  })
})
