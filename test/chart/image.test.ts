import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect } from 'chai'
import { parse } from 'yaml'
import { build, readDockerfile } from './dockerfile.ts'

const ROOT = join(import.meta.dirname, '../..')

/** An API server that does not answer: the agent must live with that. */
const NOWHERE = JSON.stringify({
  clusters: [{ name: 'none', cluster: { server: 'http://127.0.0.1:1' } }],
  users: [{ name: 'none', user: { token: 'none' } }],
  contexts: [{ name: 'none', context: { cluster: 'none', user: 'none' } }],
  'current-context': 'none'
})

/** The tests cannot build images, so they run the Dockerfile's instructions in folders. */
describe('image', function () {
  this.timeout(5 * 60_000)
  const instructions = readDockerfile(join(ROOT, 'Dockerfile'))
  const said = (name: string) =>
    instructions.filter(instruction => instruction.name === name).map(({ text }) => text)
  const [entrypoint = '[]'] = said('ENTRYPOINT')
  const [user = ''] = said('USER')
  const [program = '', ...args] = parse(entrypoint) as string[]

  let folder: string
  let app: string
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'image-'))
    app = build(instructions, ROOT, folder)
    // Only its owner can read a temporary folder, but anyone can read a folder of an image.
    chmodSync(folder, 0o755)
    writeFileSync(join(folder, 'kubeconfig'), NOWHERE)
    writeFileSync(join(folder, 'key'), 'k')
    const settings = {
      kubernetes: { kubeconfig: join(folder, 'kubeconfig') },
      apisix: { admin: { url: 'http://127.0.0.1:1', keyFile: join(folder, 'key') } },
      serve: { host: '127.0.0.1', port: 0, dashboard: { enabled: true, auth: 'none' } }
    }
    writeFileSync(join(folder, 'config.yaml'), JSON.stringify(settings))
  })
  after(() => rmSync(folder, { recursive: true }))

  const [uid = 0, gid = 0] = user.split(':').map(Number)
  const how = () => ({
    cwd: app,
    env: {
      APISIX_DRAIN_CONFIG: join(folder, 'config.yaml')
    },
    // Runs as the image's user if possible: only root can change its user.
    ...(process.getuid?.() === 0 && { uid, gid })
  })
  const run = (...more: readonly string[]) =>
    spawnSync(process.execPath, [...args, ...more], { ...how(), encoding: 'utf8', timeout: 60_000 })

  it('uses the Node.js version of this process in all of its stages', () => {
    const [major] = process.versions.node.split('.')
    const bases = new Set(said('FROM').map(from => from.replace(/^--platform=\S+ /, '').split(' ')[0]))
    expect(bases.size).to.equal(1)
    expect([...bases][0]).to.match(new RegExp(`^node:${major}\\.[\\w.-]+-slim@sha256:[0-9a-f]{64}$`))
  })

  it('starts as an unprivileged user, in a folder it cannot write', () => {
    expect({ user, program }).to.deep.equal({ user: '65532:65532', program: 'node' })
    const { status, stdout, stderr } = run('--help')
    expect(stderr).to.equal('')
    expect({ status, first: stdout.split('\n')[0] }).to.deep.equal({
      status: 0,
      first:
        'apisix-drain takes ending pods out of Apache APISIX, proves it, and only then answers their preStop hook.'
    })
  })

  it('contains every import of the agent', () => {
    expect(run('--print-config')).to.include({ status: 0, stderr: '' })
  })

  it('runs, is alive, serves its dashboard, and ends on SIGTERM', async () => {
    const child = spawn(process.execPath, [...args, 'run'], {
      ...how(),
      stdio: ['ignore', 'pipe', 'inherit']
    })
    const ended = once(child, 'exit')
    try {
      const signal = AbortSignal.timeout(60_000)
      for await (const line of createInterface({ input: child.stdout, signal })) {
        const { msg, port } = JSON.parse(line) as { msg: string; port?: number }
        if (msg !== 'listening') continue
        const { status } = await fetch(`http://127.0.0.1:${port}/healthz`, { signal })
        expect(status).to.equal(200)
        const page = await fetch(`http://127.0.0.1:${port}/`, { signal })
        expect({ status: page.status, type: page.headers.get('content-type') }).to.deep.equal({
          status: 200,
          type: 'text/html; charset=utf-8'
        })
        child.kill('SIGTERM')
      }
      expect(await ended).to.deep.equal([0, null])
    } finally {
      child.kill('SIGKILL')
    }
  })

  it('contains nothing that only development needs', () => {
    const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as {
      packages: Record<string, { dev?: boolean }>
    }
    const installed = new Set(
      readdirSync(join(app, 'node_modules')).flatMap(name =>
        name.startsWith('@')
          ? readdirSync(join(app, 'node_modules', name)).map(inner => `${name}/${inner}`)
          : [name]
      )
    )
    // npm marks what no production dependency needs.
    const unwanted = [...installed].filter(name => packages[`node_modules/${name}`]?.dev === true)
    expect(unwanted).to.deep.equal([])
    expect(readdirSync(app).toSorted()).to.deep.equal([
      'LICENSE',
      'agent',
      'dist',
      'node_modules',
      'package.json'
    ])
  })

  it('admits into the build context everything that the Dockerfile copies, and nothing else', () => {
    const [all, ...letIn] = readFileSync(join(ROOT, '.dockerignore'), 'utf8').trim().split('\n')
    expect(all).to.equal('*')
    const copied = said('COPY')
      .filter(copy => !copy.startsWith('--from='))
      .flatMap(copy => copy.split(' ').slice(0, -1))
    expect(letIn.toSorted()).to.deep.equal([...new Set(copied)].map(name => `!${name}`).toSorted())
  })
})
