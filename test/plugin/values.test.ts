import { expect } from 'chai'
import { readFileSync } from 'node:fs'
import { parse } from 'yaml'

const read = (path: string) => parse(readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8'))

describe('The configuration that plugin-config documents', () => {
  const snippet = read('plugin-config/config.snippet.yaml')
  const values = read('plugin-config/helm-values.yaml')

  it('fetches the entries from the Service of the chart when a gateway starts', () => {
    const { port } = read('charts/apisix-drain/values.yaml').service
    const agent = `http://apisix-drain.apisix.svc.cluster.local:${port}`
    expect(snippet.plugin_attr['apisix-drain'].agent).to.equal(agent)
    expect(values.apisix.pluginAttrs['apisix-drain'].agent).to.equal(agent)
  })

  it('is loaded by the module hook, which allows it to count in shared memory', () => {
    expect(snippet.apisix.lua_module_hook).to.equal('apisix.drain.hook')
    expect(values.apisix.luaModuleHook.hookPoint).to.equal('apisix.drain.hook')
  })
})
