import { expect } from 'chai'
import { createListSource } from '../../../../agent/gateway/inventory/lists.ts'
import { memoryLog } from '../../../build/serve.ts'

describe('the mode', () => {
  const start = (...answers: (object | undefined | Error)[]) => {
    const { log, lines } = memoryLog()
    const admin = {
      standalone: async () => {
        const answer = answers.shift()
        if (answer instanceof Error) throw answer
        return answer && { upstreams: [{ id: 'web' }], ...answer }
      },
      list: async () => ({ total: 0, objects: [] }),
      pageSize: 10
    }
    return { admin, source: createListSource(admin, log), lines }
  }

  it('is asked for as each listing begins, logged when it changes, and kept while it cannot be read', async () => {
    const { admin, source, lines } = start(new Error('no connection'), undefined, new Error('restarting'), {})
    expect(await source.open(), 'the collections tell what is wrong').to.equal(admin)
    expect(source.current()).to.deep.equal({ mode: undefined })
    for (const _ of [1, 2]) expect(await source.open()).to.equal(admin)
    expect(source.current()).to.deep.equal({ mode: 'etcd' })
    expect((await (await source.open()).list('upstreams', 1)).total).to.equal(1)
    expect(source.current()).to.deep.equal({ mode: 'standalone' })
    expect(lines.at(-1)).to.include({ mode: 'standalone', before: 'etcd', level: 'warn' })
  })

  it('standalone, that cannot be read now, never shows as empty collections', async () => {
    const { source } = start({}, new Error('restarting'))
    await source.open()
    expect(await source.open().catch((error: Error) => error.message)).to.equal('restarting')
  })
})
