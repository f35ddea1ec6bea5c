import { expect } from 'chai'
import { parseCommand } from '../../../../sandbox/cli.ts'

const parse = (line: string) => parseCommand(line.split(' ').filter(Boolean))

function problems(line: string): readonly string[] {
  const command = parse(line)
  if (command.kind !== 'wrong') throw new Error(`taken as ${command.kind}`)
  return command.problems
}

describe('sandbox: the command line', () => {
  it('runs three arms by default', () => {
    expect(parse('')).to.deep.equal({
      kind: 'run',
      options: {
        arms: ['no-hook', 'sleep-5', 'apisix-drain'],
        replicas: 10,
        gateways: 2,
        workers: 2,
        rate: 400,
        seed: 1,
        traffic: 'all',
        mode: 'etcd-1.8',
        evidence: 'barrier',
        keepLogs: undefined,
        json: false,
        lateMs: undefined,
        hold: false
      }
    })
  })

  it('reads every option', () => {
    const line =
      '--arms sleep-5,no-hook --replicas 3 --rate=50 --traffic quick --mode etcd-2.x --late 60000 --evidence observed --keep-logs /tmp/logs --seed 7 --json --hold --gateways 1 --workers 8'
    const command = parse(line)
    expect(command.kind === 'run' && command.options).to.deep.equal({
      arms: ['sleep-5', 'no-hook'],
      replicas: 3,
      gateways: 1,
      workers: 8,
      rate: 50,
      seed: 7,
      traffic: 'quick',
      mode: 'etcd-2.x',
      lateMs: 60_000,
      evidence: 'observed',
      keepLogs: '/tmp/logs',
      json: true,
      hold: true
    })
  })

  it('runs the arms without an ingress controller if they are named', () => {
    const command = parse('--arms controller-dead-no-hook,controller-dead --mode standalone')
    expect(command.kind === 'run' && command.options.arms).to.deep.equal([
      'controller-dead-no-hook',
      'controller-dead'
    ])
  })

  it('leaves uploads out on request', () => {
    const command = parse('--traffic no-uploads')
    expect(command.kind === 'run' && command.options.traffic).to.equal('no-uploads')
  })

  it('serves one stand-in alone', () => {
    expect(parse('--only apisix --proxy 1 --admin 2 --control 3 --workers 5')).to.deep.equal({
      kind: 'only-apisix',
      proxy: 1,
      admin: 2,
      control: 3,
      workers: 5
    })
    expect(parse('--only apisix')).to.deep.include({ proxy: 9080, admin: 9180, control: 9090, workers: 4 })
    expect(parse('--only kubernetes')).to.deep.equal({ kind: 'only-kubernetes', port: 6443 })
    expect(parse('--only kubernetes --port 0')).to.deep.equal({ kind: 'only-kubernetes', port: 0 })
  })

  it('prints its help, whatever the other options', () => {
    expect(parse('--help --rate x').kind).to.equal('help')
    expect(parse('-h').kind).to.equal('help')
  })

  const wrong: readonly (readonly [string, string])[] = [
    ['--rats 5', 'unknown option --rats: did you mean --rate?'],
    ['--nonsense', 'unknown option --nonsense: see --help'],
    ['-x', 'unknown option -x'],
    ['run', '"run" is not expected'],
    ['--rate', '--rate needs a value'],
    ['--rate=', '--rate needs a value'],
    ['--json=yes', '--json takes no value'],
    ['--rate fast', '--rate takes a whole number from 1 to 10000, not "fast"'],
    ['--rate 0', '--rate takes a whole number'],
    ['--rate 1e3', '--rate takes a whole number'],
    ['--replicas 201', '--replicas takes a whole number from 1 to 200'],
    ['--arms sleep', 'there is no arm "sleep", only no-hook, sleep-5, apisix-drain'],
    ['--arms no-hook,no-hook', '--arms names no-hook twice'],
    [
      '--arms controller-dead --mode sync',
      '--arms controller-dead needs an ingress controller: --mode sync has none'
    ],
    ['--mode discovery --arms controller-dead-no-hook', '--mode discovery has none'],
    ['--mode e', '--mode takes one of etcd-1.8, etcd-2.x, standalone, discovery, sync, not "e"'],
    ['--late 1s', '--late takes a whole number from 0 to 600000, not "1s"'],
    ['--late 5 --mode sync', '--late needs an ingress controller: --mode sync has none'],
    ['--late 5 --arms controller-dead', '--late needs an ingress controller that lives'],
    ['--evidence timer', '--evidence takes barrier or observed, not "timer"'],
    ['--keep-logs', '--keep-logs needs a value'],
    ['--traffic slow', '--traffic takes one of all, no-uploads, quick, with-websockets, not "slow"'],
    ['--only nginx', '--only takes apisix or kubernetes'],
    ['--port 1', '--port needs --only kubernetes'],
    ['--proxy 1', '--proxy needs --only apisix'],
    ['--only apisix --port 1', '--port has no meaning with --only apisix'],
    ['--only kubernetes --json', '--json has no meaning with --only kubernetes'],
    ['--only kubernetes --port 65536', '--port takes a whole number from 0 to 65535']
  ]
  for (const [line, says] of wrong) {
    it(`refuses "${line}" and names the remedy`, () => {
      expect(problems(line).join('\n')).to.contain(says)
    })
  }

  it('names all problems at once', () => {
    expect(problems('--rate x --replicas y --what')).to.have.length(3)
  })
})
