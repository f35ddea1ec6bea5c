import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect } from 'chai'

interface Played {
  readonly code: number
  readonly stderr: string
  /** The time from the last connection to the end of the hook. */
  readonly afterLastMs: number
  readonly ms: number
}

/** Runs the hook with real connections in a separate network namespace, in which no connections of other programs count. */
function play(everyMs: number, forMs: number, ...args: string[]): Played {
  const scene = join(import.meta.dirname, 'scene.ts')
  const { stdout, stderr, status } = spawnSync(
    'unshare',
    [
      '--map-root-user',
      '--net',
      'sh',
      '-c',
      'PATH=$PATH:/sbin:/usr/sbin; ip link set lo up && exec "$0" "$@"',
      process.execPath,
      scene,
      String(everyMs),
      String(forMs),
      ...args
    ],
    { encoding: 'utf8', timeout: 50_000 }
  )
  if (status !== 0) throw new Error(`the scene failed: ${stderr}`)
  return JSON.parse(stdout) as Played
}

describe('hook, quiet window', () => {
  it('returns a window after the last connection, however short that was', () => {
    const { code, stderr, afterLastMs } = play(20, 700, '--quiet', '400ms')
    expect(code).to.equal(0)
    expect(stderr).to.match(/drained, .*\n.*quiet for 400ms after \S+: [1-9]\d* connections since\n$/)
    expect(afterLastMs).to.be.at.least(390)
  })

  it('returns after the window if no connection comes', () => {
    const { stderr, ms } = play(60_000, 0, '--quiet', '300ms')
    expect(stderr).to.match(/quiet for 300ms after \S+: 0 connections since\n$/)
    expect(ms).to.be.at.least(300)
  })

  it('gives up at the end of its budget if connections keep coming', () => {
    const { code, stderr, ms } = play(10, 30_000, '--quiet', '10s', '--budget', '1500ms')
    expect(code).to.equal(0)
    expect(stderr).to.match(/not quiet within the budget \(\S+\): [1-9]\d* connections since, \d+ waiting\n$/)
    expect(ms).to.be.within(1500, 20_000)
  })

  it('is off by default', () => {
    expect(play(20, 400).stderr).to.match(/^apisix-drain-hook: drained[^\n]*\n$/)
  })
})
