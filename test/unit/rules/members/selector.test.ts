import { expect } from 'chai'
import { parseSelector } from '../../../../agent/rules/members/selector.ts'

const LABELS = { app: 'web', version: 'v2', 'shop.example/tier': 'front' }

describe('label selector', () => {
  const cases: readonly (readonly [string, boolean])[] = [
    ['app=web', true],
    ['app==web,version=v2', true],
    ['app=web,version=v1', false],
    ['version!=v1', true],
    ['version!=v2', false],
    ['color!=blue', true],
    ['version in (v1, v2)', true],
    ['version in (v1)', false],
    ['version notin (v1,v3)', true],
    ['color notin (blue)', true],
    ['app', true],
    ['color', false],
    ['!color', true],
    ['!app', false],
    ['shop.example/tier=front , app', true]
  ]
  for (const [text, matches] of cases)
    it(`${text} ${matches ? 'selects' : 'does not select'}`, () =>
      expect(parseSelector(text)?.matches(LABELS)).to.equal(matches))

  for (const text of ['', '=', 'app=web,', 'a in ()', 'a in b', 'a=b c', '(a)'])
    it(`${JSON.stringify(text)} is none`, () => expect(parseSelector(text)).to.equal(undefined))
})
