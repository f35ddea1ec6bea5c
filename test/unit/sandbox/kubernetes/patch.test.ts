import { expect } from 'chai'
import { jsonPatch, mergePatch } from '../../../../sandbox/kubernetes/patch.ts'
import { strategicMerge } from '../../../../sandbox/kubernetes/patch-strategic.ts'

describe('sandbox/kubernetes patches', () => {
  it('merge patch: sets, nests, removes by null, replaces lists', () => {
    const target = { a: 1, b: { c: 2, d: 3 }, l: [1, 2] }
    expect(mergePatch(target, { a: null, b: { c: 9 }, l: [3] })).to.deep.equal({ b: { c: 9, d: 3 }, l: [3] })
    expect(target.l).to.deep.equal([1, 2])
  })
  it('strategic merge: keyed lists by key, others replaced, sets united', () => {
    const target = {
      metadata: { annotations: { a: '1' }, finalizers: ['x'] },
      spec: { containers: [{ name: 'a', image: '1' }, { name: 'b' }], command: ['1'] }
    }
    const patch = {
      metadata: { annotations: { b: '2' }, finalizers: ['y', 'x'] },
      spec: {
        containers: [{ name: 'a', image: '2' }, { name: 'c' }],
        command: ['2'],
        '$setElementOrder/containers': []
      }
    }
    expect(strategicMerge(target, patch)).to.deep.equal({
      metadata: { annotations: { a: '1', b: '2' }, finalizers: ['x', 'y'] },
      spec: { containers: [{ name: 'a', image: '2' }, { name: 'b' }, { name: 'c' }], command: ['2'] }
    })
  })
  it('strategic merge: directives', () => {
    expect(
      strategicMerge(
        { conditions: [{ type: 'A' }, { type: 'B' }], finalizers: ['x', 'y'], m: { a: 1 } },
        {
          conditions: [{ type: 'A', $patch: 'delete' }],
          '$deleteFromPrimitiveList/finalizers': ['x'],
          m: { $patch: 'replace', b: 2 }
        }
      )
    ).to.deep.equal({ conditions: [{ type: 'B' }], finalizers: ['y'], m: { b: 2 } })
  })
  it('JSON patch: every operation', () => {
    const target = { a: { 'x/y': 1 }, l: [1, 3] }
    expect(
      jsonPatch(target, [
        { op: 'test', path: '/a/x~1y', value: 1 },
        { op: 'add', path: '/l/1', value: 2 },
        { op: 'add', path: '/l/-', value: 4 },
        { op: 'remove', path: '/l/0' },
        { op: 'replace', path: '/a/x~1y', value: 5 },
        { op: 'copy', from: '/a', path: '/b' },
        { op: 'move', from: '/a/x~1y', path: '/a/z' }
      ])
    ).to.deep.equal({ a: { z: 5 }, b: { 'x/y': 5 }, l: [2, 3, 4] })
    expect(target).to.deep.equal({ a: { 'x/y': 1 }, l: [1, 3] })
  })
  for (const [what, patch, code] of [
    ['a failed test', [{ op: 'test', path: '/a', value: 2 }], 422],
    ['a missing place', [{ op: 'remove', path: '/b' }], 422],
    ['an index beyond the end', [{ op: 'add', path: '/l/9', value: 1 }], 422],
    ['an unknown operation', [{ op: 'swap', path: '/a' }], 400],
    ['no list', {}, 400]
  ] as const)
    it(`JSON patch refuses ${what}`, () => {
      expect(() => jsonPatch({ a: 1, l: [] }, patch))
        .to.throw()
        .with.property('code', code)
    })
})
