import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'

const main = fileURLToPath(new URL('../../../../sandbox/main.ts', import.meta.url))
const run = (...args: string[]) =>
  spawnSync(process.execPath, [main, ...args], { encoding: 'utf8', timeout: 8000 })

describe('sandbox: as a process', () => {
  it('exits 2 on a wrong option, and says what to change on stderr', () => {
    const { status, stdout, stderr } = run('--rats', '5')
    expect(status).to.equal(2)
    expect(stdout).to.equal('')
    expect(stderr).to.contain('did you mean --rate?')
  })

  it('helps on stdout and exits 0', () => {
    const { status, stdout } = run('--help')
    expect(status).to.equal(0)
    expect(stdout).to.contain('npm run sandbox').and.to.contain('--only apisix')
  })
})
