import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { stringify } from 'yaml'
import { loadConfig, printConfig } from '../../../agent/config/load.ts'
import { pemFromFile } from '../../../agent/config/config.ts'
import { selfSigned } from '../../../sandbox/kubernetes/tls.ts'
import { fileOf } from '../../build/config.ts'
import { rowsOf } from '../../build/rows.ts'

/** A CA that signs nothing. */
const PEM = (await selfSigned(['a.test'])).ca

describe('config', () => {
  let folder: string
  beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'config-'))))
  afterEach(() => rmSync(folder, { recursive: true }))

  const file = (text: string, name = 'config.yaml') => {
    const path = join(folder, name)
    writeFileSync(path, text)
    return path
  }
  const ADMIN = 'apisix: { admin: { url: "http://apisix:9180", keyFile: KEY } }'
  const KEY = fileOf('s3cret')
  const load = (text: string, flags = {}) => loadConfig(file(text.replaceAll(/\bKEY\b/g, KEY)), flags)
  const problems = (text: string) => {
    const loaded = load(text)
    return loaded.ok ? [] : loaded.problems
  }
  const config = (text: string) => {
    const loaded = load(text)
    if (!loaded.ok) throw new Error(loaded.problems.join('\n'))
    return loaded.config
  }

  it('fills in every default from a file of two lines', () => {
    const found = config(ADMIN)
    expect(found.drain).to.deep.equal({
      reserveMs: 7000,
      settleMs: 5000,
      longLivedMs: 0,
      dryRun: false
    })
    expect(found.apisix.gateways).to.deep.equal({
      kind: 'pods',
      namespace: undefined,
      selector: 'app.kubernetes.io/name=apisix'
    })
    expect(found.apisix.barrier).to.equal(undefined)
    expect(found.apisix.admin!.key.read()).to.equal('s3cret')
  })

  it('is frozen deeply', () => {
    const found = config(ADMIN)
    expect(() => Object.assign(found.drain, { reserveMs: 1 })).to.throw(TypeError)
    expect(() => found.kubernetes.namespaces.push('x')).to.throw(TypeError)
  })

  it('reads every section of the file', () => {
    const ca = file(PEM, 'ca.pem')
    const token = file('t0ken\n', 'token')
    const found = config(`
kubernetes: { kubeconfig: ${file('{}', 'kubeconfig')}, namespaces: [shop] }
apisix:
  admin: { url: "https://apisix:9180/", keyFile: KEY, caFile: ${ca}, timeout: 2s }
  control: { enabled: false }
  barrier: { scheme: https, tokenFile: ${token}, caFile: ${ca}, serverName: barrier.test, ttl: 1m }
  gateways: { static: [{ name: edge, host: 192.0.2.10 }] }
drain: { settle: 6s, dryRun: true }
log: { level: debug }
`)
    expect(found.kubernetes.namespaces).to.deep.equal(['shop'])
    expect(found.apisix.admin).to.include({
      url: 'https://apisix:9180',
      timeoutMs: 2000
    })
    expect(found.apisix.barrier).to.include({ port: 9092, serverName: 'barrier.test', ttlMs: 60_000 })
    expect(found.apisix.admin!.ca?.read()).to.equal(PEM)
    expect(found.apisix.barrier?.ca?.read()).to.equal(PEM)
    expect(found.apisix.barrier?.token.read()).to.equal('t0ken')
    expect(found.apisix.gateways).to.deep.equal({
      kind: 'static',
      gateways: [{ name: 'edge', host: '192.0.2.10' }]
    })
    expect(found.drain).to.include({ settleMs: 6000, dryRun: true })
    expect(found.log.level).to.equal('debug')
  })

  it('serves the dashboard only if it is enabled, and only to those who may see it', () => {
    const dashboard = (text: string) => config(`${ADMIN}\nserve: { dashboard: ${text} }`).serve.dashboard
    expect(config(ADMIN).serve.dashboard).to.equal(undefined)
    expect(dashboard('{ enabled: false, tokenFile: KEY }')).to.equal(undefined)
    expect(dashboard('{ enabled: true, auth: none }')).to.deep.equal({ auth: { kind: 'none' } })
    const { auth } = dashboard(`{ enabled: true, tokenFile: ${file('d4sh\n', 'dashboard')} }`)!
    expect(auth.kind === 'token' && auth.token.read()).to.equal('d4sh')
  })

  it('lists all problems of single settings at once, and shows no value', () => {
    const found = problems(`
apisix:
  admin: { url: "ftp://apisix", key: hunter2, timout: 3s, enabled: 5 }
  control: { enabled: false }
drain: { reserve: 3, settle: 1 s }
log: { level: loud }
srve: {}
`)
    expect(found).to.have.members([
      'apisix.admin.keyFile: is required, such as "/run/secrets/apisix-drain/admin-key"',
      'apisix.admin.url: must be an http:// or https:// URL',
      'apisix.admin.enabled: no such setting; enabled belongs to apisix.control.enabled',
      'apisix.admin.key: a secret is not written into the configuration; use keyFile',
      'apisix.admin.timout: no such setting; there are url, keyFile, caFile, timeout',
      'drain.reserve: write a duration: a number and a unit, such as 3s, 250ms or 2m',
      'drain.settle: write a duration: a number and a unit, such as 3s, 250ms or 2m',
      'log.level: must be one of trace, debug, info, warn, error, fatal',
      'srve: no such setting; there are kubernetes, apisix, drain, serve, leader, sync, ghosts, inject, log'
    ])
    expect(found.join()).not.to.include('hunter2')
  })

  it('needs the Admin API or the barrier, and reports a missing setting of a section with an example', () => {
    const nothing = ['apisix.admin: is required without apisix.barrier; give its url and its keyFile']
    expect(problems('')).to.deep.equal(nothing)
    expect(problems('apisix: { admin: {} }')).to.have.members([
      'apisix.admin.url: is required, such as "http://apisix-admin.apisix:9180"',
      'apisix.admin.keyFile: is required, such as "/run/secrets/apisix-drain/admin-key"'
    ])
    const barrier = `barrier: { tokenFile: ${file('t0ken', 'token')} }`
    expect(problems(`{ apisix: { ${barrier} }, sync: { allow: [shop/web] } }`)).to.deep.equal([
      'sync.allow: has no meaning without apisix.admin; name an Admin API or take it out'
    ])
  })

  interface Refused {
    readonly case: string
    readonly given: { readonly apisix?: object }
    readonly says: string
  }
  for (const { case: name, given, says } of rowsOf('refused.yaml', import.meta.url) as readonly Refused[])
    it(`refuses ${name}`, () => {
      const apisix = { admin: { url: 'http://a:1', keyFile: 'KEY' }, ...given.apisix }
      const found = problems(stringify({ ...given, apisix }))
      expect(found, found.join('\n')).to.have.length(1)
      expect(found[0]).to.match(new RegExp(says))
    })

  it('refuses a file that is missing, no YAML, or no mapping, and names the place', () => {
    const missing = loadConfig(join(folder, 'nowhere.yaml'))
    expect(missing.ok ? [] : missing.problems).to.have.length(1)
    expect(missing.ok ? [] : missing.problems[0]).to.match(
      /nowhere.yaml: cannot be read \(ENOENT\); check --config/
    )
    expect(problems('a: [1\nb: 2')[0]).to.match(/config.yaml:2:1: is no YAML/)
    expect(problems('apisix: &a { admin: *a }')[0]).to.match(
      /cannot be read: .*; write its parts out instead/
    )
    expect(problems('- a')[0]).to.match(/must hold sections/)
    expect(problems('apisix: 7')[0]).to.match(/^apisix: expected object/)
  })

  it('is named by a variable, if not by the command line; without a file nothing is guessed', () => {
    expect(loadConfig(undefined)).to.deep.equal({
      ok: false,
      problems: ['no configuration is given: name its file with --config or in APISIX_DRAIN_CONFIG']
    })
    process.env['APISIX_DRAIN_CONFIG'] = file(ADMIN.replace('KEY', KEY))
    try {
      expect(loadConfig(undefined).ok).to.equal(true)
    } finally {
      delete process.env['APISIX_DRAIN_CONFIG']
    }
  })

  it('prints itself with defaults and without secrets', () => {
    const key = file('hunter2', 'key')
    const barrier = 'barrier: { tokenFile: KEY }, gateways: { namespace: apisix }'
    const loaded = load(`apisix: { admin: { url: "http://a:1", keyFile: ${key} }, ${barrier} }`)
    if (!loaded.ok) throw new Error(loaded.problems.join('\n'))
    const text = printConfig(loaded)
    expect(text).to.include(`keyFile: ${key}`).and.include(`tokenFile: ${KEY}`)
    expect(text).to.include('reserve: 7s')
    expect(text).to.include('namespace: apisix')
    expect(text).not.to.match(/hunter2|s3cret/)
    expect(JSON.stringify(loaded.config)).not.to.match(/hunter2|s3cret/)
    expect(String(loaded.config.apisix.admin!.key)).to.equal(`<from file ${key}>`)
  })

  it('accepts --dry-run on the command line', () => {
    const loaded = load(ADMIN, { dryRun: true })
    expect(loaded.ok && loaded.config.drain.dryRun).to.equal(true)
  })

  it('rereads a rotated secret, and keeps the last one while the file is missing or empty', () => {
    const key = file('first\n', 'key')
    const { key: secret } = config(`apisix: { admin: { url: "http://a:1", keyFile: ${key} } }`).apisix.admin!
    writeFileSync(key, 'second\n')
    expect(secret.read()).to.equal('second')
    rmSync(key)
    expect(secret.read()).to.equal('second')
    writeFileSync(key, '')
    expect(secret.read()).to.equal('second')
  })

  it('refuses a CA that is not PEM or is damaged, and names the problem', () => {
    const text = (ca: string) =>
      `apisix: { admin: { url: "https://a:1", keyFile: KEY, caFile: ${file(ca, 'ca.pem')} } }`
    const at = join(folder, 'ca.pem')
    expect(problems(text('0000'))).to.deep.equal([
      `apisix.admin.caFile: cannot take the CA from ${at}: it holds no PEM certificate (-----BEGIN CERTIFICATE-----)`
    ])
    const damaged = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'
    expect(problems(text(PEM + damaged))).to.deep.equal([
      `apisix.admin.caFile: cannot take the CA from ${at}: its certificate 2 of 2 is damaged`
    ])
  })

  it('rereads a replaced CA, and keeps the last good one while the file is missing or not PEM', async () => {
    const next = (await selfSigned(['b.test'])).ca
    const path = file(PEM, 'ca.pem')
    const pem = pemFromFile(path)
    writeFileSync(path, 'half')
    expect(pem.read()).to.equal(PEM)
    writeFileSync(path, next)
    expect(pem.read()).to.equal(next)
    rmSync(path)
    expect(pem.read()).to.equal(next)
  })

  it('refuses an empty secret', () => {
    const key = file('\n', 'key')
    expect(problems(`apisix: { admin: { url: "http://a:1", keyFile: ${key} } }`)[0]).to.match(
      /the file is empty/
    )
  })

  it('accepts the generated example, apart from the key file that is not here', () => {
    const loaded = loadConfig(join(import.meta.dirname, '../../../config.example.yaml'))
    expect(loaded.ok ? [] : loaded.problems).to.deep.equal([
      'apisix.admin.keyFile: cannot take the secret from /run/secrets/apisix-drain/admin-key: there is no such file'
    ])
  })
})
