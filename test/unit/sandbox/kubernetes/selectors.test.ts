import { expect } from 'chai'
import { fieldSelector, labelSelector, matcher } from '../../../../sandbox/kubernetes/selectors.ts'
import { createStore } from '../../../../sandbox/kubernetes/store.ts'
import { podDraft } from './client.ts'

describe('sandbox/kubernetes selectors', () => {
  const labels = { app: 'web', 'k8s.io/tier': 'front', empty: '' }
  const cases: readonly (readonly [string, boolean])[] = [
    ['', true],
    ['app=web', true],
    ['app==web', true],
    ['app=api', false],
    ['app!=web', false],
    ['other!=web', true],
    ['empty=', true],
    ['app in (api, web)', true],
    ['app in (api)', false],
    ['app notin (api,db)', true],
    ['app notin (web)', false],
    ['missing notin (web)', true],
    ['missing in (web)', false],
    ['k8s.io/tier', true],
    ['missing', false],
    ['!missing', true],
    ['!app', false],
    ['app=web,k8s.io/tier in (front,back),!missing', true],
    ['app=web,missing', false]
  ]
  for (const [text, expected] of cases)
    it(`labels "${text}" ${expected ? 'match' : 'do not match'}`, () => {
      expect(labelSelector(text)(labels)).to.equal(expected)
    })
  for (const text of ['a in b', '=x', 'a=b=c', 'a in (b', ','])
    it(`refuses "${text}"`, () => expect(() => labelSelector(text)).to.throw('unable to parse'))

  it('selects by the fields the API server indexes, and refuses others', () => {
    const store = createStore()
    const pod = store.create('pods', podDraft('a'))
    expect(fieldSelector('pods', 'spec.nodeName=host-1,status.phase!=Failed')(pod)).to.equal(true)
    expect(fieldSelector('pods', 'metadata.name=b')(pod)).to.equal(false)
    expect(fieldSelector('pods', 'metadata.namespace=default')(pod)).to.equal(true)
    expect(() => fieldSelector('pods', 'spec.containers=x')).to.throw('field label not supported')
    expect(() => fieldSelector('configmaps', 'spec.nodeName=x')).to.throw('field label not supported')
  })
  it('joins namespace, labels and fields', () => {
    const pod = createStore().create('pods', podDraft('a', { app: 'web' }))
    expect(
      matcher('pods', { namespace: 'default', labels: 'app=web', fields: 'metadata.name=a' })(pod)
    ).to.equal(true)
    expect(matcher('pods', { namespace: 'shop', labels: 'app=web' })(pod)).to.equal(false)
  })
})
