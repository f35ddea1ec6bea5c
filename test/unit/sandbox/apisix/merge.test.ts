import { expect } from 'chai'
import { mergePatch, patchAt } from '../../../../sandbox/apisix/merge.ts'

describe('sandbox/apisix merge patch', () => {
  const map = { nodes: { a: 1, b: 1 }, labels: { team: 'shop' } }
  const array = { nodes: [{ host: 'a' }, { host: 'b' }] }

  const cases: [string, unknown, unknown][] = [
    ['null deletes inside a map', mergePatch(map, { nodes: { a: null } }), { ...map, nodes: { b: 1 } }],
    ['null on an absent key changes nothing', mergePatch(map, { nodes: { c: null } }), map],
    ['null deletes a field', mergePatch(map, { labels: null }), { nodes: map.nodes }],
    ['an empty table replaces', mergePatch(map, { nodes: {} }), { ...map, nodes: {} }],
    ['an array replaces an array', mergePatch(array, { nodes: [{ host: 'c' }] }), { nodes: [{ host: 'c' }] }],
    ['an array replaces a map', mergePatch(map, { nodes: [] }), { ...map, nodes: [] }],
    [
      'a map replaces an array, nulls and all',
      mergePatch(array, { nodes: { a: null } }),
      { nodes: { a: null } }
    ],
    [
      'a map replaces an empty map',
      mergePatch({ nodes: {} }, { nodes: { a: null } }),
      { nodes: { a: null } }
    ],
    [
      'a sub-path sets one value',
      patchAt(map, ['nodes', 'a'], 0),
      { ok: true, value: { ...map, nodes: { a: 0, b: 1 } } }
    ],
    [
      'a sub-path stores a null',
      patchAt(map, ['nodes', 'a'], null),
      { ok: true, value: { ...map, nodes: { a: null, b: 1 } } }
    ],
    [
      'a sub-path cannot reach an array element',
      patchAt(array, ['nodes', '3'], 1),
      { ok: true, value: { nodes: { 1: { host: 'a' }, 2: { host: 'b' }, 3: 1 } } }
    ],
    [
      'a sub-path through a text',
      patchAt({ name: 'x' }, ['name', 'y'], 1),
      { ok: false, problem: 'invalid sub-path: /name' }
    ]
  ]
  for (const [name, got, wanted] of cases) it(name, () => expect(got).to.deep.equal(wanted))

  it('does not change the stored object', () => {
    const before = structuredClone(map)
    mergePatch(map, { nodes: { a: null } })
    expect(map).to.deep.equal(before)
  })
})
