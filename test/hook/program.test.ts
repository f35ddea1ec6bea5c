import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { ARCHITECTURES } from '../../scripts/go.ts'
import { hookPath } from '../../scripts/hook.ts'
import { readDockerfile } from '../chart/dockerfile.ts'
import { HOOK, runHook } from './run.ts'

const ROOT = join(import.meta.dirname, '../..')

/** The size in docs/hooks.md, in bytes. */
const LARGEST = 3_000_000
/** The number of each machine in the ELF header. `PT_INTERP` is the type of the program header that names a dynamic loader. */
const MACHINES = { amd64: 62, arm64: 183 }
const PT_INTERP = 3

describe('hook, the program', () => {
  for (const architecture of ARCHITECTURES) {
    it(`is one small static file for ${architecture}`, () => {
      const file = readFileSync(hookPath(architecture))
      expect(file.length).to.be.below(LARGEST)
      expect(file.readUInt16LE(18)).to.equal(MACHINES[architecture])
      const [start, size, count] = [
        Number(file.readBigUInt64LE(32)),
        file.readUInt16LE(54),
        file.readUInt16LE(56)
      ]
      const types = Array.from({ length: count }, (_, i) => file.readUInt32LE(start + i * size))
      expect(types).not.to.include(PT_INTERP)
    })
  }

  it('prints its version', async () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string }
    expect(await runHook(['--version'])).to.include({ code: 0, stdout: `${version}\n`, stderr: '' })
  })

  it('prints its options, and docs/hooks.md lists all of them', async () => {
    const { code, stdout } = await runHook(['--help'])
    expect(code).to.equal(0)
    const options = [...new Set(stdout.match(/--[a-z-]+/g))]
    expect(options).to.have.length.above(10)
    const page = readFileSync(join(ROOT, 'docs/hooks.md'), 'utf8')
    expect(options.filter(option => !page.includes(`\`${option}`))).to.deep.equal([])
  })

  it('installs itself for other users, over an older version, and reports errors', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'hook-'))
    try {
      for (let i = 0; i < 2; i++) {
        const { code, stdout } = await runHook(['install', folder])
        expect(code).to.equal(0)
        expect(stdout).to.match(new RegExp(`^installed ${folder}/apisix-drain-hook `))
      }
      const [only, ...more] = readdirSync(folder)
      const installed = join(folder, only ?? '')
      expect(more).to.deep.equal([])
      expect(statSync(installed).mode & 0o777).to.equal(0o755)
      expect(readFileSync(installed).equals(readFileSync(HOOK))).to.equal(true)
      const missing = await runHook(['install', join(folder, 'none')])
      expect(missing.code).to.equal(1)
      expect(missing.stderr).to.contain('install: open')
      expect(await runHook(['install'])).to.include({
        code: 2,
        stderr: 'usage: apisix-drain-hook install <folder>\n'
      })
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  it('is built by its Dockerfile with the flags of this build, and runs as an unprivileged user', () => {
    const said = readDockerfile(join(ROOT, 'hook/Dockerfile'))
    const find = (name: string) =>
      said
        .filter(line => line.name === name)
        .map(({ text }) => text)
        .join('\n')
    const script = ['hook', 'go']
      .map(name => readFileSync(join(ROOT, `scripts/${name}.ts`), 'utf8'))
      .join('\n')
    for (const flag of ['-trimpath', '-s -w -X main.version=']) {
      expect(find('RUN')).to.contain(flag)
      expect(script).to.contain(flag)
    }
    expect(find('FROM')).to.match(/\nscratch$/)
    expect({ user: find('USER'), entrypoint: find('ENTRYPOINT') }).to.deep.equal({
      user: '65532:65532',
      entrypoint: '["/apisix-drain-hook"]'
    })
    const toolchain = /golang:1\.(\d+)/.exec(find('FROM'))?.[1]
    const needed = /^go 1\.(\d+)/m.exec(readFileSync(join(ROOT, 'hook/go.mod'), 'utf8'))?.[1]
    expect(Number(toolchain)).to.be.at.least(Number(needed))
  })
})
