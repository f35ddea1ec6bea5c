import { expect } from 'chai'
import { formatProblems, helpOf, parseCommand } from '../../../agent/start/cli.ts'

describe('cli', () => {
  const status = {
    kind: 'status' as const,
    configFile: undefined,
    json: false,
    url: undefined,
    tokenFile: undefined
  }
  const tlsSecret = 'apisix-drain-barrier-tls'
  const more = { agent: undefined, allow: [], listen: 'https', tlsSecret, json: false }
  const plugin = { kind: 'plugin-values' as const, from: '-', ...more }
  const cases: Record<string, ReturnType<typeof parseCommand>> = {
    '': { kind: 'run', configFile: undefined, dryRun: false },
    'run --config a.yaml': { kind: 'run', configFile: 'a.yaml', dryRun: false },
    '--config=a.yaml --dry-run': { kind: 'run', configFile: 'a.yaml', dryRun: true },
    '--config a.yaml --print-config': { kind: 'print-config', configFile: 'a.yaml', dryRun: false },
    'doctor --config a.yaml': { kind: 'doctor', configFile: 'a.yaml', json: false },
    'doctor --json': { kind: 'doctor', configFile: undefined, json: true },
    'plugin values --from - --allow 10.0.0.0/8,fd00::/8': { ...plugin, allow: ['10.0.0.0/8', 'fd00::/8'] },
    'plugin values --from - --listen both --tls-secret mine': {
      ...plugin,
      listen: 'both',
      tlsSecret: 'mine'
    },
    'plugin values': {
      kind: 'wrong',
      problem:
        'plugin values needs --from: helm get values <release> -o yaml | apisix-drain plugin values --from -'
    },
    plugin: { kind: 'wrong', problem: 'the command is plugin values' },
    'plugin values --from x --url http://a': { kind: 'wrong', problem: '--url belongs to status' },
    'plugin values --from x --agent drain': {
      kind: 'wrong',
      problem: '--agent takes http://host:port, not "drain"'
    },
    'doctor --from x': { kind: 'wrong', problem: '--from belongs to plugin' },
    'plugin --help': { kind: 'help', command: 'plugin' },
    '--help': { kind: 'help', command: undefined },
    'doctor -h': { kind: 'help', command: 'doctor' },
    '--version': { kind: 'version' },
    docter: { kind: 'wrong', problem: 'there is no command docter, did you mean doctor?' },
    start: {
      kind: 'wrong',
      problem: 'there is no command start; there are run, doctor, status, plugin'
    },
    'run twice': { kind: 'wrong', problem: '"twice" is too much; a file goes after --config' },
    '--confg a.yaml': { kind: 'wrong', problem: 'there is no option --confg, did you mean --config?' },
    '--config': { kind: 'wrong', problem: '--config needs a value' },
    '--dry-run=yes': { kind: 'wrong', problem: '--dry-run takes no value' },
    '--json': { kind: 'wrong', problem: '--json belongs to doctor, status, plugin' },
    status,
    'status --url http://10.0.0.1:8080 --token-file t --json': {
      ...status,
      json: true,
      url: 'http://10.0.0.1:8080',
      tokenFile: 't'
    },
    'status --url 10.0.0.1': { kind: 'wrong', problem: '--url takes http://host:port, not "10.0.0.1"' },
    'status --token-file t': { kind: 'wrong', problem: '--token-file needs --url' },
    'status --dry-run': { kind: 'wrong', problem: '--dry-run belongs to run' },
    'doctor --url http://a': { kind: 'wrong', problem: '--url belongs to status' },
    '-x': {
      kind: 'wrong',
      problem:
        'there is no option -x; there are --config, --print-config, --dry-run, --json, --url, --token-file, --from, --agent, --allow, --listen, --tls-secret, --help, --version'
    }
  }
  for (const [line, command] of Object.entries(cases)) {
    it(`apisix-drain ${line}`, () =>
      expect(parseCommand(line === '' ? [] : line.split(' '))).to.deep.equal(command))
  }

  it('names in the help of one command its options only', () => {
    const of = (name: 'run' | 'doctor' | 'status' | 'plugin') =>
      [...helpOf(name).matchAll(/^ {2}(--\S+)/gm)].map(([, option]) => option)
    expect(of('doctor')).to.deep.equal(['--config', '--json', '--help', '--version'])
    expect(of('run')).to.include('--dry-run').and.not.include('--json')
    expect(helpOf('status')).not.to.include('doctor')
  })

  it('lists problems, one per line', () => {
    expect(formatProblems(['a: b'])).to.equal('the configuration has a problem:\n  - a: b\n')
    expect(formatProblems(['a', 'b'])).to.equal('the configuration has 2 problems:\n  - a\n  - b\n')
  })
})
