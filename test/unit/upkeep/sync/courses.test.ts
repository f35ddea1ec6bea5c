import { expect } from 'chai'
import type { Claim } from '../../../../agent/rules/members/claim.ts'
import { createCourses } from '../../../../agent/upkeep/sync/courses.ts'
import { holder } from '../../../build/holder.ts'

const A = '10.0.0.1:80'
const B = '10.0.0.2:80'

describe('the history of a claim', () => {
  const claim = { holder: 'upstreams/u', id: 'u', slowStartMs: 1000, weight: 100 } as Claim
  const rig = () => {
    const clock = { now: 10_000 }
    return { clock, courses: createCourses(() => clock.now) }
  }

  it('records when each endpoint became a member, and forgets former members', () => {
    const { clock, courses } = rig()
    courses.update(claim, new Set([A]), holder('u', []))
    clock.now = 20_000
    const { since } = courses.update(claim, new Set([A, B]), holder('u', [`${A}=10`]))
    expect([...since]).eql([
      [A, 10_000],
      [B, 20_000]
    ])
    expect([...courses.update(claim, new Set([B]), holder('u', [])).since.keys()]).eql([B])
  })

  it('resumes the slow start of a listed node at the step that its weight shows', () => {
    const { courses } = rig()
    const { since } = courses.update(claim, new Set([A, B]), holder('u', [`${A}=30`, `${B}=100`]))
    expect(since.get(A)).equal(10_000 - 200)
    expect(since.get(B)).most(10_000 - 1000)
  })

  it('remembers a former member while it is listed', () => {
    const { courses } = rig()
    courses.update(claim, new Set([A, B]), holder('u', [A, B]))
    expect([...courses.update(claim, new Set([B]), holder('u', [A, B])).were]).eql([A, B])
    expect([...courses.update(claim, new Set([B]), holder('u', [B])).were]).eql([B])
  })

  it('ends with its claim', () => {
    const { courses } = rig()
    courses.update(claim, new Set([A]), undefined)
    courses.keep(new Map([['upstreams/u', claim]]))
    expect(courses.of('upstreams/u').since.size).equal(1)
    courses.keep(new Map())
    expect(courses.of('upstreams/u').since.size).equal(0)
  })
})
